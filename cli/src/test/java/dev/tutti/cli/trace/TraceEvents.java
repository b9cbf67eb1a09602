package dev.tutti.cli.trace;

import dev.tutti.runtime.record.JsonReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A reader of the trace event format, which Perfetto imports: complete events, with the names that
 * metadata events give to their processes and threads.
 *
 * @see <a href="https://perfetto.dev/docs/getting-started/other-formats">Perfetto's formats</a>
 */
final class TraceEvents {
  /** A slice of a time line, with times in microseconds. */
  record Slice(String process, String thread, String name, double ts, double dur, Map<?, ?> args) {}

  private TraceEvents() {}

  static List<Slice> read(Path file) throws IOException {
    List<?> events = list(map(JsonReader.read(Files.readString(file))).get("traceEvents"));
    Map<Object, String> processes = new HashMap<>();
    Map<Object, String> threads = new HashMap<>();
    for (Object each : events) {
      Map<?, ?> event = map(each);
      if ("M".equals(event.get("ph"))) {
        String name = text(map(event.get("args")).get("name"));
        switch (text(event.get("name"))) {
          case "process_name" -> processes.put(event.get("pid"), name);
          case "thread_name" -> threads.put(thread(event), name);
          default -> throw new IOException("no metadata of the format: " + event);
        }
      }
    }
    List<Slice> slices = new ArrayList<>();
    for (Object each : events) {
      Map<?, ?> event = map(each);
      if ("X".equals(event.get("ph"))) {
        slices.add(
            new Slice(
                text(processes.get(event.get("pid"))),
                text(threads.get(thread(event))),
                text(event.get("name")),
                number(event.get("ts")),
                number(event.get("dur")),
                event.get("args") instanceof Map<?, ?> args ? args : Map.of()));
      }
    }
    return slices;
  }

  private static List<Object> thread(Map<?, ?> event) {
    return List.of(number(event.get("pid")), number(event.get("tid")));
  }

  private static Map<?, ?> map(Object value) {
    return (Map<?, ?>) value;
  }

  private static List<?> list(Object value) {
    return (List<?>) value;
  }

  private static double number(Object value) {
    return ((Number) value).doubleValue();
  }

  private static String text(Object value) {
    return value instanceof String text ? text : "(unnamed)";
  }
}
