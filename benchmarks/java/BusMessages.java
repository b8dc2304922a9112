import com.sun.management.OperatingSystemMXBean;
import io.nats.client.Connection;
import io.nats.client.JetStreamSubscription;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.Options;
import io.nats.client.PullSubscribeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Locale;

/** The messages of a stream of JetStream, so many of them, in order; any thread may take the next. */
final class BusMessages implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    /** The bus forgets after 5 seconds who asks for nothing, and who has much to do asks for nothing for so long. */
    private static final Duration IDLE = Duration.ofMinutes(5);

    private static final int AHEAD = 256;
    private final Connection connection;
    private final JetStreamSubscription subscription;
    private long asked = 0;
    private long taken = 0;
    private final long count;
    private long begun = 0;
    private long begunCpu = 0;

    BusMessages(String url, String token, String stream, long count) throws Exception {
        this.count = count;
        connection = Nats.connect(new Options.Builder().server(url).token(token.toCharArray()).build());
        ConsumerConfiguration once = ConsumerConfiguration.builder()
                .ackPolicy(AckPolicy.None)
                .inactiveThreshold(IDLE)
                .build();
        PullSubscribeOptions options = PullSubscribeOptions.builder().stream(stream).configuration(once).build();
        subscription = connection.jetStream().subscribe(null, options);
    }

    /** The next message, or null behind the last. Time begins with the first. */
    synchronized byte[] next() throws Exception {
        if (taken == count) {
            return null;
        }
        if (asked < count && asked - taken <= AHEAD / 2) {
            int more = (int) Math.min(AHEAD, count - asked);
            subscription.pull(more);
            asked += more;
        }
        Message message = subscription.nextMessage(PATIENCE);
        if (message == null) {
            throw new IllegalStateException(count - taken + " messages never came");
        }
        if (begun == 0) {
            begun = System.nanoTime();
            begunCpu = cpu();
        }
        taken++;
        return message.getData();
    }

    /** What it took since the first message: seconds, and those of the processor of the whole process. */
    String elapsed() {
        double seconds = (System.nanoTime() - begun) / 1e9;
        return String.format(Locale.ROOT, "{\"seconds\": %.6f, \"cpu\": %.6f}", seconds, (cpu() - begunCpu) / 1e9);
    }

    @Override
    public void close() throws Exception {
        connection.close();
    }

    private static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
