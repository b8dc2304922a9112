import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.types.Row;

/**
 * Flink SQL over raw events of the bus, as often as it is told to: a line `URL token stream messages SQL-file tasks
 * answers-file` of standard input is a run of a new job over all messages, answered by a line of JSON.
 */
public final class FlinkBus {
    private static RawEvents raw;
    private static BusMessages messages;

    /** Each task takes the next message when it has time: so all are at about the same time, and equally busy. */
    public static final class Source extends RichParallelSourceFunction<Row> {
        private volatile boolean running = true;

        @Override
        public void run(SourceContext<Row> context) throws Exception {
            for (byte[] body; running && (body = messages.next()) != null; ) {
                raw.decode(body, each -> {
                    synchronized (context.getCheckpointLock()) {
                        context.collect(
                                Row.of(each.getEvent(), each.getId(), each.getX(), each.getY(), each.getTime()));
                    }
                });
            }
        }

        @Override
        public void cancel() {
            running = false;
        }
    }

    public static void main(String[] args) throws Exception {
        Recorded recorded = new Recorded(Path.of(args[0]));
        raw = new RawEvents(recorded);
        FlinkPeer.know(recorded);
        System.out.println("{}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] told = line.split("\t");
            try (BusMessages some = new BusMessages(told[0], told[1], told[2], Long.parseLong(told[3]))) {
                messages = some;
                String sql = Files.readString(Path.of(told[4]));
                List<String> found = FlinkPeer.answers(sql, Integer.parseInt(told[5]), new Source());
                String elapsed = some.elapsed();
                Files.write(Path.of(told[6]), found);
                System.out.println(elapsed);
            }
        }
        System.exit(0); // whoever asked is gone
    }
}
