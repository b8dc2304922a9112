import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;

/** A recording as benchmarks/situation_recorded.py writes it: lines of JSON, whose fields have one order. */
final class Recorded {
    static final long LATENESS = 2_000;
    private final Path folder;

    Recorded(Path folder) {
        this.folder = folder;
    }

    /** A person seen somewhere; the time is in milliseconds. */
    public static final class Sighting {
        private final String event;
        private final String id;
        private final double x;
        private final double y;
        private final long time;

        Sighting(String event, String id, double x, double y, long time) {
            this.event = event;
            this.id = id;
            this.x = x;
            this.y = y;
            this.time = time;
        }

        public String getEvent() {
            return event;
        }

        public String getId() {
            return id;
        }

        public double getX() {
            return x;
        }

        public double getY() {
            return y;
        }

        public long getTime() {
            return time;
        }
    }

    /** All events as objects, in the order of arrival. */
    void read(Consumer<Sighting> each) throws IOException {
        lines(line -> each.accept(sighting(line)));
    }

    /** The lines of all files, in order. */
    void lines(Consumer<String> each) throws IOException {
        List<Path> files;
        try (Stream<Path> found = Files.list(folder.resolve("json"))) {
            files = found.sorted().toList();
        }
        for (Path file : files) {
            try (BufferedReader lines = Files.newBufferedReader(file)) {
                for (String line; (line = lines.readLine()) != null; ) {
                    each.accept(line);
                }
            }
        }
    }

    static Sighting sighting(String line) {
        int id = 7;
        int idEnd = line.indexOf('"', id);
        int person = idEnd + 12;
        int personEnd = line.indexOf('"', person);
        int x = personEnd + 6;
        int xEnd = line.indexOf(',', x);
        int y = xEnd + 5;
        int yEnd = line.indexOf(',', y);
        return new Sighting(
                line.substring(id, idEnd),
                line.substring(person, personEnd),
                Double.parseDouble(line.substring(x, xEnd)),
                Double.parseDouble(line.substring(y, yEnd)),
                Long.parseLong(line, yEnd + 8, line.length() - 1, 10));
    }

    /** The rows of a table: what stands between the quotes, or the number. */
    List<String[]> table(String name) throws IOException {
        List<String[]> rows = new ArrayList<>();
        for (String line : Files.readAllLines(folder.resolve(name + ".json"))) {
            String[] fields = line.substring(1, line.length() - 1).split(",");
            for (int place = 0; place < fields.length; place++) {
                fields[place] = fields[place].substring(fields[place].indexOf(':') + 1).replace("\"", "");
            }
            rows.add(fields);
        }
        return rows;
    }
}
