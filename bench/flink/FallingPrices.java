// Falling prices (S+ with S.price > NEXT(S).price) by Flink's CEP: n events, each cheaper than the one before, one key.
// Arguments: numbers of events. One line a number: n, trends found, seconds of the job.

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

public class FallingPrices {
    static final AtomicLong TRENDS = new AtomicLong();

    public static class Stock {
        public long time;
        public double price;

        public Stock() {}

        public Stock(long time, double price) {
            this.time = time;
            this.price = price;
        }
    }

    static class Falling extends IterativeCondition<Stock> {
        @Override
        public boolean filter(Stock next, Context<Stock> context) throws Exception {
            Stock last = null;
            for (Stock one : context.getEventsForPattern("S")) last = one;
            return last == null || last.price > next.price;
        }
    }

    static class Count extends PatternProcessFunction<Stock, Long> {
        @Override
        public void processMatch(java.util.Map<String, List<Stock>> match, Context context, Collector<Long> out) {
            TRENDS.incrementAndGet();
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            int n = Integer.parseInt(argument);
            List<Stock> events = new ArrayList<>();
            for (int i = 0; i < n; i++) events.add(new Stock(1000L * i, n - i));
            StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
            DataStream<Stock> stream = environment.fromData(events).assignTimestampsAndWatermarks(
                WatermarkStrategy.<Stock>forMonotonousTimestamps().withTimestampAssigner((event, old) -> event.time));
            Pattern<Stock, ?> pattern = Pattern.<Stock>begin("S", AfterMatchSkipStrategy.noSkip())
                .where(new Falling()).oneOrMore().allowCombinations();
            TRENDS.set(0);
            long start = System.nanoTime();
            CEP.pattern(stream, pattern).process(new Count()).sinkTo(new DiscardingSink<>());
            environment.execute();
            System.out.printf("%d %d %.3f%n", n, TRENDS.get(), (System.nanoTime() - start) / 1e9);
            System.out.flush();
        }
    }
}
