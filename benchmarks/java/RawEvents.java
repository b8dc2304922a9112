import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Events of badge readers and cameras, as arrays of JSON, in the terms of the building: who carries the tag or has the
 * face, and where that is, from where the sensor hangs and looks to. Any thread may decode.
 */
final class RawEvents {
    private static final double FOOT = 0.3048;
    private static final double CENTIMETRE = 0.01;
    private static final JsonFactory JSON =
            JsonFactory.builder().enable(StreamReadFeature.USE_FAST_DOUBLE_PARSER).build();
    private final Map<String, String> tags = new HashMap<>();
    private final Map<String, String> faces = new HashMap<>();
    private final Map<String, Mount> readers = new HashMap<>();
    private final Map<String, Mount> cameras = new HashMap<>();

    private record Mount(double x, double y, double heading, double cos, double sin) {}

    RawEvents(Recorded recorded) throws IOException {
        for (String[] row : recorded.table("persons")) {
            tags.put(row[2], row[0]);
            faces.put(row[3], row[0]);
        }
        read(recorded, "readers", readers);
        read(recorded, "cameras", cameras);
    }

    private static void read(Recorded recorded, String table, Map<String, Mount> mounts) throws IOException {
        for (String[] row : recorded.table(table)) {
            double heading = Double.parseDouble(row[3]);
            double angle = Math.toRadians(heading);
            mounts.put(row[0], new Mount(
                    Double.parseDouble(row[1]), Double.parseDouble(row[2]), heading, Math.cos(angle), Math.sin(angle)));
        }
    }

    /** The sightings that a message has. */
    void decode(byte[] body, Consumer<Recorded.Sighting> each) throws IOException {
        try (JsonParser json = JSON.createParser(body)) {
            json.nextToken();
            while (json.nextToken() == JsonToken.START_OBJECT) {
                each.accept(event(json));
            }
        }
    }

    private Recorded.Sighting event(JsonParser json) throws IOException {
        String id = null;
        String time = null;
        String type = null;
        String sensor = null;
        String seen = null;
        double first = 0;
        double second = 0;
        for (String name; (name = json.nextFieldName()) != null; ) {
            switch (name) {
                case "id" -> id = json.nextTextValue();
                case "time" -> time = json.nextTextValue();
                case "type" -> type = json.nextTextValue();
                case "data" -> {
                    json.nextToken();
                    for (String field; (field = json.nextFieldName()) != null; ) {
                        switch (field) {
                            case "reader", "camera" -> sensor = json.nextTextValue();
                            case "tag", "face" -> seen = json.nextTextValue();
                            case "cartesian", "polar" -> {
                                json.nextToken();
                                for (String part; (part = json.nextFieldName()) != null; ) {
                                    json.nextToken();
                                    switch (part) {
                                        case "dx", "r" -> first = json.getDoubleValue();
                                        case "dy", "theta" -> second = json.getDoubleValue();
                                        default -> json.skipChildren();
                                    }
                                }
                            }
                            default -> skip(json);
                        }
                    }
                }
                default -> skip(json);
            }
        }
        return type.equals("TagSeen")
                ? tag(id, readers.get(sensor), tags.get(seen), first, second, millis(time))
                : face(id, cameras.get(sensor), faces.get(seen), first, second, millis(time));
    }

    private static void skip(JsonParser json) throws IOException {
        json.nextToken();
        json.skipChildren();
    }

    private static Recorded.Sighting tag(String id, Mount at, String who, double dx, double dy, long time) {
        double x = at.x + CENTIMETRE * (dx * at.cos - dy * at.sin);
        double y = at.y + CENTIMETRE * (dx * at.sin + dy * at.cos);
        return new Recorded.Sighting(id, who, x, y, time);
    }

    private static Recorded.Sighting face(String id, Mount at, String who, double r, double theta, long time) {
        double angle = Math.toRadians(at.heading + theta);
        double x = at.x + FOOT * r * Math.cos(angle);
        double y = at.y + FOOT * r * Math.sin(angle);
        return new Recorded.Sighting(id, who, x, y, time);
    }

    /** Of an instant in whole milliseconds as it is always written, 2026-01-01T00:00:00.000Z. */
    private static long millis(String time) {
        if (time.length() != 24 || time.charAt(23) != 'Z') {
            return java.time.Instant.parse(time).toEpochMilli();
        }
        long year = number(time, 0, 4);
        long month = number(time, 5, 7);
        long shifted = month > 2 ? year : year - 1; // years that begin in March have their odd day at their end
        long day = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400
                + (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + number(time, 8, 10) - 1 - 719_468;
        long seconds = ((day * 24 + number(time, 11, 13)) * 60 + number(time, 14, 16)) * 60 + number(time, 17, 19);
        return seconds * 1000 + number(time, 20, 23);
    }

    private static long number(String text, int begin, int end) {
        long found = 0;
        for (int place = begin; place < end; place++) {
            found = 10 * found + text.charAt(place) - '0';
        }
        return found;
    }
}
