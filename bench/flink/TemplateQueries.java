// SASE+'s template queries by Flink's CEP: SEQ(a+, b) of one symbol, a[1].price % 500 = 0, b.volume < 150; a[i] any (p1),
// rising (p2), above the least so far (p3).
// Arguments: a file of events (time in milliseconds, symbol, price, volume, comma between), milliseconds of the window,
// queries such as p2:skip or p2:consecutive. One line a query: its name, matches, events in them, processor seconds of
// the job, all threads. Each query is warmed up with some of the events first.

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
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public class TemplateQueries {
    static final AtomicLong MATCHES = new AtomicLong();
    static final AtomicLong EVENTS = new AtomicLong();
    static final int SOME = 2000;
    static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    public static class Stock {
        public long time;
        public int symbol;
        public int price;
        public int volume;

        public Stock() {}

        static Stock of(String line) {
            String[] cells = line.split(",");
            Stock stock = new Stock();
            stock.time = Long.parseLong(cells[0]);
            stock.symbol = Integer.parseInt(cells[1]);
            stock.price = Integer.parseInt(cells[2]);
            stock.volume = Integer.parseInt(cells[3]);
            return stock;
        }
    }

    static class Taken extends IterativeCondition<Stock> {
        final String query;

        Taken(String query) {
            this.query = query;
        }

        @Override
        public boolean filter(Stock next, Context<Stock> context) throws Exception {
            if (query.equals("p1")) {
                return context.getEventsForPattern("a").iterator().hasNext() || next.price % 500 == 0;
            }
            Stock last = null;
            int least = Integer.MAX_VALUE;
            for (Stock one : context.getEventsForPattern("a")) {
                last = one;
                least = Math.min(least, one.price);
            }
            if (last == null) return next.price % 500 == 0;
            return next.price > (query.equals("p2") ? last.price : least);
        }
    }

    static class Cheap extends SimpleCondition<Stock> {
        @Override
        public boolean filter(Stock stock) {
            return stock.volume < 150;
        }
    }

    static class Count extends PatternProcessFunction<Stock, Long> {
        @Override
        public void processMatch(Map<String, List<Stock>> match, Context context, Collector<Long> out) {
            MATCHES.incrementAndGet();
            for (List<Stock> part : match.values()) EVENTS.addAndGet(part.size());
        }
    }

    static double seconds(List<Stock> events, String name, long window) throws Exception {
        String[] words = name.split(":");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        KeyedStream<Stock, Integer> stream = environment.fromData(events).assignTimestampsAndWatermarks(
            WatermarkStrategy.<Stock>forMonotonousTimestamps().withTimestampAssigner((event, old) -> event.time))
            .keyBy(event -> event.symbol);
        Pattern<Stock, Stock> some = Pattern.<Stock>begin("a", AfterMatchSkipStrategy.noSkip())
            .where(new Taken(words[0])).oneOrMore();
        Pattern<Stock, Stock> all = (words[1].equals("consecutive") ? some.consecutive() : some)
            .next("b").where(new Cheap()).within(Duration.ofMillis(window));
        MATCHES.set(0);
        EVENTS.set(0);
        long start = PROCESS.getProcessCpuTime();
        CEP.pattern(stream, all).process(new Count()).sinkTo(new DiscardingSink<>());
        environment.execute();
        return (PROCESS.getProcessCpuTime() - start) / 1e9;
    }

    public static void main(String[] arguments) throws Exception {
        List<Stock> events = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) events.add(Stock.of(line));
        long window = Long.parseLong(arguments[1]);
        for (int i = 2; i < arguments.length; i++) {
            seconds(events.subList(0, SOME), arguments[i], window);
            double taken = seconds(events, arguments[i], window);
            System.out.printf("%s %d %d %.3f%n", arguments[i], MATCHES.get(), EVENTS.get(), taken);
            System.out.flush();
        }
    }
}
