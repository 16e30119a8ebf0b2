package trendlake;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local disk for Hadoop, without processes. Where Hadoop's native library is missing, as it is with PySpark, Hadoop
 * starts `chmod` for each file and folder that it makes, and `readlink` for each file that it renames: a commit of some
 * rows to a Delta table starts twenty, which takes longer than to write them. Java can ask the system itself.
 *
 * Compiled by Janino.
 */
public class LocalDisk extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
        try {
            Files.setAttribute(
                pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()), new LinkOption[0]
            );
        } catch (UnsupportedOperationException error) {
            super.setPermission(path, permission);
        }
    }

    /** A link itself is Hadoop's to describe. */
    public FileStatus getFileLinkStatus(Path path) throws IOException {
        if (Files.isSymbolicLink(pathToFile(path).toPath())) {
            return super.getFileLinkStatus(path);
        }
        return getFileStatus(path);
    }

    /** For `FileSystem`: with checksums, as Hadoop's own. */
    public static class WithChecksums extends LocalFileSystem {
        public WithChecksums() {
            super(new LocalDisk());
        }
    }

    /** For `FileContext`, Hadoop's other way to a file system: with checksums, as Hadoop's own. */
    public static class ContextWithChecksums extends ChecksumFs {
        public ContextWithChecksums(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(new Context(uri, configuration));
        }
    }

    /** As Hadoop's `RawLocalFs`, which cannot be told its file system. */
    public static class Context extends DelegateToFileSystem {
        public Context(URI uri, Configuration configuration) throws IOException, URISyntaxException {
            super(uri, new LocalDisk(), configuration, "file", false);
        }

        public int getUriDefaultPort() {
            return -1; // a disk has none
        }

        public boolean isValidName(String name) {
            return true; // the disk says what it does not take
        }
    }
}
