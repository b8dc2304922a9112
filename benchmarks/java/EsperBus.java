import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Esper over raw events of the bus, as often as it is told to: a line `URL token stream messages EPL-file engines
 * answers-file` of standard input is a run of new engines over all messages, answered by a line of JSON.
 *
 * <p>One thread reads, decodes and puts events into the order of time; each engine has a thread of its own.
 */
public final class EsperBus {
    private static final int WAITING = 64;
    private static final List<Recorded.Sighting> END = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Recorded recorded = new Recorded(Path.of(args[0]));
        RawEvents raw = new RawEvents(recorded);
        System.out.println("{}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] told = line.split("\t");
            String epl = Files.readString(Path.of(told[4]));
            EPCompiled compiled =
                    EPCompilerProvider.getCompiler().compile(epl, new CompilerArguments(EsperPeer.settings()));
            List<Engine> engines = new ArrayList<>();
            int count = Integer.parseInt(told[5]);
            for (int number = 0; number < count; number++) {
                engines.add(new Engine(compiled, recorded, number, count));
            }
            engines.forEach(Thread::start);
            try (BusMessages messages = new BusMessages(told[0], told[1], told[2], Long.parseLong(told[3]))) {
                pass(messages, raw, engines);
                List<String> found = new ArrayList<>();
                for (Engine engine : engines) {
                    found.addAll(engine.end());
                }
                String elapsed = messages.elapsed();
                Files.write(Path.of(told[6]), found);
                System.out.println(elapsed);
            }
        }
        System.exit(0); // whoever asked is gone
    }

    /** Events go on in order, as late as they may be. */
    private static void pass(BusMessages messages, RawEvents raw, List<Engine> engines) throws Exception {
        PriorityQueue<Recorded.Sighting> waiting =
                new PriorityQueue<>(Comparator.comparingLong(Recorded.Sighting::getTime));
        long[] last = {0};
        for (byte[] body; (body = messages.next()) != null; ) {
            raw.decode(body, each -> {
                waiting.add(each);
                last[0] = Math.max(last[0], each.getTime());
            });
            List<Recorded.Sighting> ready = new ArrayList<>();
            while (waiting.peek().getTime() < last[0] - Recorded.LATENESS) {
                ready.add(waiting.poll());
            }
            for (Engine engine : engines) {
                engine.take(ready);
            }
        }
        List<Recorded.Sighting> rest = new ArrayList<>();
        while (!waiting.isEmpty()) {
            rest.add(waiting.poll());
        }
        for (Engine engine : engines) {
            engine.take(rest);
        }
    }

    /** One runtime; with several of them each has its part of the restricted rooms, and all events. */
    private static final class Engine extends Thread {
        private static final long PAUSE = 1_000;
        private static final long STEP = 10;
        private final BlockingQueue<List<Recorded.Sighting>> given = new ArrayBlockingQueue<>(WAITING);
        private final List<String> found = new ArrayList<>();
        private final EPRuntime runtime;
        private final EPEventService events;
        private final EventSender sender;
        private long now = 0;
        private volatile Exception failure = null;

        Engine(EPCompiled compiled, Recorded recorded, int number, int count) throws Exception {
            runtime = EsperPeer.open(compiled, recorded, number, count, found);
            events = runtime.getEventService();
            sender = events.getEventSender("PersonPositions");
            setDaemon(true);
        }

        void take(List<Recorded.Sighting> some) throws Exception {
            given.put(some);
        }

        List<String> end() throws Exception {
            given.put(END);
            join();
            if (failure != null) {
                throw failure;
            }
            return found;
        }

        @Override
        public void run() {
            try {
                for (List<Recorded.Sighting> some; (some = given.take()) != END; ) {
                    pass(some);
                }
            } catch (InterruptedException over) {
                failure = over;
            }
            runtime.destroy();
        }

        /** Who has failed goes on to take what nobody needs: whoever gives it would wait for ever. */
        private void pass(List<Recorded.Sighting> some) {
            try {
                if (failure == null) {
                    some.forEach(this::send);
                }
            } catch (RuntimeException problem) {
                failure = problem;
            }
        }

        private void send(Recorded.Sighting sighting) {
            long time = sighting.getTime();
            if (now == 0) {
                now = time - 1;
                events.advanceTime(now);
            }
            if (time - now > PAUSE) {
                while (now < time) {
                    now += STEP; // not at once: all that is due would see windows that are empty already
                    events.advanceTime(now);
                }
            } else if (time > now) {
                events.advanceTime(time);
                now = time;
            }
            sender.sendEvent(sighting);
        }
    }
}
