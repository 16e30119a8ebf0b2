// Row patterns by Trino's engine in this process, over a table in its memory.
// Arguments: statements that make the table, then a query, a line of standard input each. Prints, of the last line, the
// rows of its answer, processor seconds of all threads and seconds, after one run of it to warm up.

import com.sun.management.OperatingSystemMXBean;
import io.trino.Session;
import io.trino.plugin.memory.MemoryConnectorFactory;
import io.trino.testing.LocalQueryRunner;
import io.trino.testing.MaterializedResult;
import io.trino.testing.TestingSession;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;

public class RowPatterns {
    public static void main(String[] arguments) throws Exception {
        OperatingSystemMXBean process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        List<String> lines = new BufferedReader(new InputStreamReader(System.in)).lines().toList();
        Session session = TestingSession.testSessionBuilder().setCatalog("memory").setSchema("default").build();
        LocalQueryRunner runner = LocalQueryRunner.create(session);
        runner.createCatalog("memory", new MemoryConnectorFactory(), Map.of());
        for (String line : lines) runner.execute(line);
        String query = lines.get(lines.size() - 1);
        long cpu = process.getProcessCpuTime(), start = System.nanoTime();
        MaterializedResult result = runner.execute(query);
        double seconds = (System.nanoTime() - start) / 1e9, processor = (process.getProcessCpuTime() - cpu) / 1e9;
        System.out.printf("%s %.3f %.3f%n", result.getMaterializedRows().get(0).getFields(), processor, seconds);
        System.exit(0);
    }
}
