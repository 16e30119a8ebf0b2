package trendlake;

import io.delta.storage.HDFSLogStore;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
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
        if (overwrite.booleanValue()) {
            super.write(path, lines, overwrite, configuration);
            return;
        }
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
            link(entry, scratch);
        } finally {
            scratch.delete();
        }
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
