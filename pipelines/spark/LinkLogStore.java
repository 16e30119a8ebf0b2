package trendlake;

import io.delta.storage.HDFSLogStore;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.CopyOption;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log store for tables on a local disk that several processes write. Delta's own renames a log entry into place
 * after it has looked whether there is one: two processes may both find none, and the second replaces the entry of the
 * first. A hard link is refused by the file system where the name exists, whoever has made it. delta-rs commits the same
 * way, so the two exclude each other too.
 *
 * Compiled by Janino, which infers no type parameters: hence the casts.
 */
public class LinkLogStore extends HDFSLogStore {
    public LinkLogStore(Configuration configuration) {
        super(configuration);
    }

    public void write(Path path, Iterator lines, Boolean overwrite, Configuration configuration) throws IOException {
        File entry = new File(path.toUri().getPath());
        File scratch = new File(this.createTempPath(path).toUri().getPath());
        try {
            OutputStream stream = new FileOutputStream(scratch);
            try {
                while (lines.hasNext()) {
                    stream.write(((String) lines.next() + "\n").getBytes("UTF-8"));
                }
            } finally {
                stream.close();
            }
            if (overwrite.booleanValue()) {
                replace(entry, scratch);
            } else {
                link(entry, scratch);
            }
        } finally {
            scratch.delete();
        }
    }

    /**
     * Hadoop's own starts a dozen processes for a file (readlink, chmod), which takes longer than a small commit. A
     * checksum that Hadoop has left of the file before goes first: it would not be true any more.
     */
    private static void replace(File entry, File scratch) throws IOException {
        new File(entry.getParentFile(), "." + entry.getName() + ".crc").delete();
        Files.move(scratch.toPath(), entry.toPath(), new CopyOption[] { StandardCopyOption.ATOMIC_MOVE });
    }

    /** As Hadoop's, which looks at every file of the folder first: with a log's length a commit would take longer. */
    public Iterator listFrom(Path path, Configuration configuration) throws IOException {
        Path log = path.getParent();
        String[] names = new File(log.toUri().getPath()).list();
        if (names == null) {
            return super.listFrom(path, configuration); // which says what is wrong
        }
        Arrays.sort(names);
        FileSystem files = path.getFileSystem(configuration);
        List listed = new ArrayList();
        for (int i = 0; i < names.length; i++) {
            if (names[i].compareTo(path.getName()) >= 0) {
                try {
                    listed.add(files.getFileStatus(new Path(log, names[i])));
                } catch (FileNotFoundException error) {
                    continue; // removed meanwhile
                }
            }
        }
        return listed.iterator();
    }

    private static void link(File entry, File scratch) throws IOException {
        try {
            Files.createLink(entry.toPath(), scratch.toPath());
        } catch (FileAlreadyExistsException error) {
            throw error; // another writer's commit: Delta tries the next version
        } catch (UnsupportedOperationException error) {
            throw new IOException(refused(entry), error);
        } catch (IOException error) {
            throw new IOException(refused(entry), error);
        }
    }

    private static String refused(File entry) {
        return "cannot create the log entry " + entry + " as a hard link; Trendlake needs a file system with hard links"
            + " for a local warehouse, so that two processes never commit the same version";
    }
}
