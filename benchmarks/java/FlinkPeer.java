import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.source.legacy.RichParallelSourceFunction;
import org.apache.flink.table.annotation.DataTypeHint;
import org.apache.flink.table.annotation.FunctionHint;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.functions.TableFunction;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Flink SQL over a recording, as often as it is told to: a line `SQL-file memory|files tasks answers-file` of standard
 * input is a run of a new job over all events, answered by a line of JSON. The process stays, and so gets warm.
 *
 * <p>The statements of a file are views, and then the query. Tables that do not change are functions with everything in
 * memory: a join to them would take the time of events away, and no lookup is faster.
 */
public final class FlinkPeer {
    private static final long FULL = 15_000;
    private static final double SIDE = 25.0;
    private static Recorded recorded;
    private static final List<Recorded.Sighting> SIGHTINGS = new ArrayList<>();
    private static final Map<String, String> STATUS = new HashMap<>();
    private static final Map<Long, List<Object[]>> ROOMS = new HashMap<>();
    private static final AtomicLong BEGUN = new AtomicLong();
    private static final AtomicLong BEGUN_CPU = new AtomicLong();
    private static final AtomicLong COUNTED = new AtomicLong();

    /** Events one in so many, each task its own, so that all tasks are at about the same time. */
    public static final class Source extends RichParallelSourceFunction<Row> {
        private final boolean files;
        private volatile boolean running = true;
        private transient long place;
        private transient long counted;

        Source(boolean files) {
            this.files = files;
        }

        @Override
        public void run(SourceContext<Row> context) throws Exception {
            int task = getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
            int tasks = getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
            if (files) {
                recorded.lines(line -> {
                    if (running && place++ % tasks == task) {
                        emit(context, Recorded.sighting(line));
                    }
                });
            } else {
                for (int next = task; running && next < SIGHTINGS.size(); next += tasks) {
                    emit(context, SIGHTINGS.get(next));
                }
            }
            COUNTED.addAndGet(counted);
        }

        private void emit(SourceContext<Row> context, Recorded.Sighting each) {
            if (each.getTime() - SIGHTINGS.get(0).getTime() >= FULL && !each.getId().equals("nobody")) {
                if (counted == 0) {
                    if (BEGUN.compareAndSet(0, System.nanoTime())) {
                        BEGUN_CPU.set(cpu());
                    }
                }
                counted++;
            }
            synchronized (context.getCheckpointLock()) {
                context.collect(Row.of(each.getEvent(), each.getId(), each.getX(), each.getY(), each.getTime()));
            }
        }

        @Override
        public void cancel() {
            running = false;
        }
    }

    /** The status of a person, or null. */
    public static final class StatusOf extends ScalarFunction {
        public String eval(String person) {
            return STATUS.get(person);
        }
    }

    /** The restricted rooms that a place is in. */
    @FunctionHint(output = @DataTypeHint("ROW<room STRING>"))
    public static final class RestrictedAt extends TableFunction<Row> {
        public void eval(Double x, Double y) {
            for (Object[] room : ROOMS.getOrDefault(cell(Math.floor(x / SIDE), Math.floor(y / SIDE)), List.of())) {
                if ((double) room[1] <= x && x <= (double) room[3] && (double) room[2] <= y && y <= (double) room[4]) {
                    collect(Row.of(room[0]));
                }
            }
        }
    }

    /** Take the tables into memory. */
    static void know(Recorded recorded) throws Exception {
        for (String[] row : recorded.table("persons")) {
            STATUS.put(row[0], row[1]);
        }
        for (String[] row : recorded.table("rooms")) {
            if (row[1].equals("restricted")) {
                double[] at = new double[4];
                for (int side = 0; side < 4; side++) {
                    at[side] = Double.parseDouble(row[side + 2]);
                }
                Object[] room = {row[0], at[0], at[1], at[2], at[3]};
                for (double x = Math.floor(at[0] / SIDE); x <= Math.floor(at[2] / SIDE); x++) {
                    for (double y = Math.floor(at[1] / SIDE); y <= Math.floor(at[3] / SIDE); y++) {
                        ROOMS.computeIfAbsent(cell(x, y), none -> new ArrayList<>()).add(room);
                    }
                }
            }
        }
    }

    private static long cell(double x, double y) {
        return ((long) x << 32) ^ ((long) y & 0xffffffffL);
    }

    public static void main(String[] args) throws Exception {
        recorded = new Recorded(Path.of(args[0]));
        recorded.read(SIGHTINGS::add);
        know(recorded);
        System.out.println("{\"events\": " + SIGHTINGS.size() + "}");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] told = line.split("\t");
            System.out.println(run(Files.readString(Path.of(told[0])), told));
        }
        System.exit(0); // whoever asked is gone
    }

    private static String run(String sql, String[] told) throws Exception {
        BEGUN.set(0);
        COUNTED.set(0);
        List<String> found = answers(sql, Integer.parseInt(told[2]), new Source(told[1].equals("files")));
        double seconds = (System.nanoTime() - BEGUN.get()) / 1e9;
        double taken = (cpu() - BEGUN_CPU.get()) / 1e9;
        Files.write(Path.of(told[3]), found);
        String form = "{\"events\": %d, \"seconds\": %.6f, \"cpu\": %.6f}";
        return String.format(Locale.ROOT, form, COUNTED.get(), seconds, taken);
    }

    /** What the last statement gives over the events of a source, to their end. */
    static List<String> answers(String sql, int tasks, RichParallelSourceFunction<Row> source) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setParallelism(tasks);
        environment.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        TypeInformation<Row> type = Types.ROW_NAMED(
                new String[] {"id", "person", "x", "y", "at"},
                Types.STRING, Types.STRING, Types.DOUBLE, Types.DOUBLE, Types.LONG);
        DataStream<Row> events = environment.addSource(source, type);
        Schema schema = Schema.newBuilder()
                .column("id", DataTypes.STRING())
                .column("person", DataTypes.STRING())
                .column("x", DataTypes.DOUBLE())
                .column("y", DataTypes.DOUBLE())
                .column("at", DataTypes.BIGINT())
                .columnByExpression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)")
                .watermark("ts", "ts - INTERVAL '2' SECOND")
                .build();
        tables.createTemporaryView("sightings", tables.fromDataStream(events, schema));
        tables.createTemporarySystemFunction("status_of", StatusOf.class);
        tables.createTemporarySystemFunction("restricted_at", RestrictedAt.class);
        String[] statements = sql.replaceAll("(?m)^--.*$", "").split(";");
        int last = statements.length - (statements[statements.length - 1].isBlank() ? 2 : 1);
        for (int place = 0; place < last; place++) {
            tables.executeSql(statements[place]);
        }
        List<String> found = new ArrayList<>();
        try (CloseableIterator<Row> rows = tables.executeSql(statements[last]).collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                found.add(row.getField(0) + "\t" + row.getField(1));
            }
        }
        return found;
    }

    /** Of the whole process: that is all tasks of the job. */
    private static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
