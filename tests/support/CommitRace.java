package trendlake;

import io.delta.storage.LogStore;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.FileAlreadyExistsException;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Tries to commit the versions 1 to COUNT of a table, version i at START + i * PERIOD microseconds of the clock (START is
 * read from stdin), and prints those whose commit succeeded as far as it knows.
 */
public class CommitRace {
    public static void main(String[] asked) throws Exception {
        String name = asked[0];
        Configuration configuration = new Configuration();
        LogStore store = (LogStore) Class.forName(asked[1])
            .getConstructor(new Class[] {Configuration.class}).newInstance(new Object[] {configuration});
        Path log = new Path("file:" + asked[2]);
        int count = Integer.parseInt(asked[3]);
        long period = Long.parseLong(asked[4]);
        log.getFileSystem(configuration).exists(log);
        System.out.println("ready");
        long start = Long.parseLong(new BufferedReader(new InputStreamReader(System.in)).readLine());
        StringBuffer committed = new StringBuffer();
        for (int version = 1; version <= count; version++) {
            long due = start + version * period;
            long left = due - now();
            if (left > 2000L) {
                Thread.sleep(left / 1000L - 1L);
            }
            while (now() < due) {
            }
            String line = "{\"commitInfo\":{\"timestamp\":" + due / 1000L + ",\"operation\":\"" + name + "\"}}";
            Path entry = new Path(log, String.format("%020d.json", new Object[] {Integer.valueOf(version)}));
            try {
                store.write(entry, Collections.singletonList(line).iterator(), Boolean.FALSE, configuration);
                committed.append(version).append('\n');
            } catch (FileAlreadyExistsException error) {
            }
        }
        System.out.print(committed);
    }

    private static long now() {
        java.time.Instant moment = java.time.Instant.now();
        return moment.getEpochSecond() * 1000000L + moment.getNano() / 1000L;
    }
}
