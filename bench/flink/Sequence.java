// A cheap trade and the very next trade of its symbol, by Flink's CEP.
// Arguments: a file of events (time in milliseconds, symbol, price, comma between), the price below which a trade is
// cheap, milliseconds of the window. Prints matches, and processor seconds of the job, all threads, after a run with some
// of the events to warm up.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public class Sequence {
    static final AtomicLong MATCHES = new AtomicLong();
    static final int SOME = 5000;
    static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static class Trade {
        public long time;
        public int symbol;
        public int price;

        public Trade() {}

        static Trade of(String line) {
            String[] cells = line.split(",");
            Trade trade = new Trade();
            trade.time = Long.parseLong(cells[0]);
            trade.symbol = Integer.parseInt(cells[1]);
            trade.price = Integer.parseInt(cells[2]);
            return trade;
        }
    }

    static class Cheap extends SimpleCondition<Trade> {
        final int limit;

        Cheap(int limit) {
            this.limit = limit;
        }

        @Override
        public boolean filter(Trade trade) {
            return trade.price < limit;
        }
    }

    static class Count extends PatternProcessFunction<Trade, Long> {
        @Override
        public void processMatch(Map<String, List<Trade>> match, Context context, Collector<Long> out) {
            MATCHES.incrementAndGet();
        }
    }

    static double seconds(List<Trade> events, int limit, long window) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        KeyedStream<Trade, Integer> stream = environment.fromData(events).assignTimestampsAndWatermarks(
            WatermarkStrategy.<Trade>forMonotonousTimestamps().withTimestampAssigner((event, old) -> event.time))
            .keyBy(event -> event.symbol);
        Pattern<Trade, Trade> pattern = Pattern.<Trade>begin("a", AfterMatchSkipStrategy.noSkip())
            .where(new Cheap(limit)).next("b").within(Duration.ofMillis(window));
        MATCHES.set(0);
        long start = PROCESS.getProcessCpuTime();
        CEP.pattern(stream, pattern).process(new Count()).sinkTo(new DiscardingSink<>());
        environment.execute();
        return (PROCESS.getProcessCpuTime() - start) / 1e9;
    }

    public static void main(String[] arguments) throws Exception {
        List<Trade> events = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) events.add(Trade.of(line));
        int limit = Integer.parseInt(arguments[1]);
        long window = Long.parseLong(arguments[2]);
        seconds(events.subList(0, SOME), limit, window);
        double taken = seconds(events, limit, window);
        System.out.printf("%d %.3f%n", MATCHES.get(), taken);
    }
}
