import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.common.client.util.EventUnderlyingType;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.PriorityQueue;

/**
 * Esper over a recording, as often as it is told to: a line `EPL-file memory|files engines answers-file` of standard
 * input is a run of a new engine over all events, answered by a line of JSON. The process stays, and so gets warm.
 *
 * <p>Time is that of events. Esper wants it to go forward only: from memory, events come in the order of their times;
 * from files, they are put into it on the way, as late as the recording allows events to be.
 */
public final class EsperPeer {
    private static final long FULL = 15_000;
    private static final long STEP = 10;
    private static int runs = 0;

    public static boolean inside(double x, double y, double x1, double y1, double x2, double y2) {
        return x1 <= x && x <= x2 && y1 <= y && y <= y2;
    }

    public static boolean within(double x1, double y1, double x2, double y2, double distance) {
        return (x1 - x2) * (x1 - x2) + (y1 - y2) * (y1 - y2) <= distance * distance;
    }

    public static void main(String[] args) throws Exception {
        Recorded recorded = new Recorded(Path.of(args[0]));
        List<Recorded.Sighting> sightings = new ArrayList<>();
        recorded.read(sightings::add);
        sightings.sort(Comparator.comparingLong(Recorded.Sighting::getTime));
        Map<String, EPCompiled> compiled = new HashMap<>();
        System.out.println("{\"events\": " + sightings.size() + "}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] told = line.split("\t");
            if (!compiled.containsKey(told[0])) {
                String epl = Files.readString(Path.of(told[0]));
                compiled.put(told[0], EPCompilerProvider.getCompiler().compile(epl, new CompilerArguments(settings())));
            }
            List<Engine> engines = new ArrayList<>();
            int count = Integer.parseInt(told[2]);
            for (int number = 0; number < count; number++) {
                engines.add(new Engine(compiled.get(told[0]), recorded, number, count));
            }
            List<Thread> threads = new ArrayList<>();
            for (Engine engine : engines) {
                Thread thread = new Thread(() -> engine.run(told[1].equals("files") ? null : sightings));
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
            System.out.println(result(engines, Path.of(told[3])));
        }
        System.exit(0); // whoever asked is gone
    }

    private static String result(List<Engine> engines, Path answers) throws Exception {
        List<String> found = new ArrayList<>();
        double seconds = 0;
        double cpu = 0;
        for (Engine engine : engines) {
            if (engine.failure != null) {
                throw engine.failure;
            }
            found.addAll(engine.found);
            seconds = Math.max(seconds, engine.seconds);
            cpu += engine.cpu;
        }
        Files.write(answers, found);
        String told = "{\"events\": %d, \"seconds\": %.6f, \"cpu\": %.6f}";
        return String.format(Locale.ROOT, told, engines.get(0).measured, seconds, cpu);
    }

    static Configuration settings() {
        Configuration found = new Configuration();
        found.getCommon().addEventType("PersonPositions", Recorded.Sighting.class);
        found.getCommon().addImport(EsperPeer.class);
        found.getCommon().getEventMeta().setDefaultEventRepresentation(EventUnderlyingType.OBJECTARRAY);
        found.getRuntime().getThreading().setInternalTimerEnabled(false);
        found.getRuntime().getThreading().setListenerDispatchPreserveOrder(false);
        found.getRuntime().getThreading().setInsertIntoDispatchPreserveOrder(false);
        return found;
    }

    /** A runtime with the tables in it, at time 0; the event and the room of each alarm are added to what is found. */
    static EPRuntime open(EPCompiled compiled, Recorded recorded, int number, int count, List<String> found)
            throws Exception {
        EPRuntime runtime = EPRuntimeProvider.getRuntime("engine " + runs++, settings());
        EPEventService events = runtime.getEventService();
        events.advanceTime(0);
        for (EPStatement statement : runtime.getDeploymentService().deploy(compiled).getStatements()) {
            if (statement.getName().equals("Alarm")) {
                statement.addListener((alarms, gone, from, at) -> note(alarms, found));
            }
        }
        for (String[] row : recorded.table("persons")) {
            events.sendEventObjectArray(new Object[] {row[0], row[1]}, "User");
        }
        for (String[] row : recorded.table("rooms")) {
            if (Math.floorMod(row[0].hashCode(), count) == number) {
                Object[] room = {row[0], row[1], d(row[2]), d(row[3]), d(row[4]), d(row[5])};
                events.sendEventObjectArray(room, "Room");
            }
        }
        return runtime;
    }

    private static Double d(String text) {
        return Double.valueOf(text);
    }

    private static void note(EventBean[] alarms, List<String> found) {
        if (alarms != null) {
            for (EventBean alarm : alarms) {
                found.add(alarm.get("event") + "\t" + alarm.get("room"));
            }
        }
    }

    /** One runtime; with several of them each has its part of the restricted rooms, and all events. */
    private static final class Engine {
        final List<String> found = new ArrayList<>();
        int measured = 0;
        double seconds = 0;
        double cpu = 0;
        Exception failure = null;
        private final Recorded recorded;
        private final EPRuntime runtime;
        private final EPEventService events;
        private final EventSender sender;
        private long now = 0;
        private long first = -1;
        private long full = 0;
        private long fullCpu = 0;

        Engine(EPCompiled compiled, Recorded recorded, int number, int count) throws Exception {
            this.recorded = recorded;
            runtime = open(compiled, recorded, number, count, found);
            events = runtime.getEventService();
            sender = events.getEventSender("PersonPositions");
        }

        void run(List<Recorded.Sighting> given) {
            try {
                if (given != null) {
                    given.forEach(this::take);
                } else {
                    ordered();
                }
            } catch (Exception problem) {
                failure = problem;
            }
            runtime.destroy();
        }

        private void ordered() throws Exception {
            PriorityQueue<Recorded.Sighting> waiting =
                    new PriorityQueue<>(Comparator.comparingLong(Recorded.Sighting::getTime));
            long[] last = {0};
            recorded.read(each -> {
                waiting.add(each);
                last[0] = Math.max(last[0], each.getTime());
                while (waiting.peek().getTime() < last[0] - Recorded.LATENESS) {
                    take(waiting.poll());
                }
            });
            while (!waiting.isEmpty()) {
                take(waiting.poll());
            }
        }

        /** What is counted begins when windows are full, and ends with the last event of a person. */
        private void take(Recorded.Sighting sighting) {
            long time = sighting.getTime();
            if (first < 0) {
                first = time;
                events.advanceTime(time - 1);
                now = time - 1;
            }
            if (sighting.getId().equals("nobody")) {
                if (seconds == 0) {
                    seconds = (System.nanoTime() - full) / 1e9;
                    cpu = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - fullCpu) / 1e9;
                }
                while (now < time) {
                    now += STEP; // not at once: all that is due would see windows that are empty already
                    events.advanceTime(now);
                }
                return;
            }
            if (time > now) {
                events.advanceTime(time);
                now = time;
            }
            sender.sendEvent(sighting);
            if (full == 0) {
                if (time - first >= FULL) {
                    full = System.nanoTime();
                    fullCpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
                }
            } else {
                measured++;
            }
        }
    }
}
