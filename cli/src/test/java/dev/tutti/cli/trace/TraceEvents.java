package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.json.Json;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A reader of the trace event format, as Perfetto imports it: complete events, with the names that
 * metadata events give to their processes and threads. Refuses events that lack a field, events
 * before time 0 and those of a thread that overlap without nesting, which Perfetto drops, as well
 * as a thread 0 and a number of threads of two processes, which some of its versions mistake for
 * others.
 *
 * @see <a href="https://perfetto.dev/docs/getting-started/other-formats">Perfetto's formats</a>
 */
final class TraceEvents {
  /** A slice of a time line, with times in nanoseconds. */
  record Slice(String process, String thread, String name, long start, long end, Map<?, ?> args) {}

  private TraceEvents() {}

  static List<Slice> read(Path file) throws IOException {
    Map<?, ?> whole = (Map<?, ?>) Json.read(Files.readString(file));
    List<?> events = (List<?>) whole.get("traceEvents");
    Map<Object, String> processes = new HashMap<>();
    Map<Object, String> threads = new HashMap<>();
    Map<Long, Object> processOf = new HashMap<>();
    Map<Object, List<Slice>> slices = new HashMap<>();
    for (Object each : events) {
      Map<?, ?> event = (Map<?, ?>) each;
      Object process = (Long) event.get("pid");
      Long thread = (Long) event.get("tid");
      assertThat(thread).isPositive();
      assertThat(processOf.merge(thread, process, (one, _) -> one)).isEqualTo(process);
      String name = (String) Objects.requireNonNull(event.get("name"));
      Map<?, ?> args = (Map<?, ?>) event.get("args");
      if ("M".equals(event.get("ph"))) {
        assertThat(name).isIn("process_name", "thread_name");
        Map<Object, String> names = name.equals("process_name") ? processes : threads;
        Object named = name.equals("process_name") ? process : thread;
        assertThat(names.put(named, (String) args.get("name"))).as("second name").isNull();
      } else {
        assertThat(event.get("ph")).isEqualTo("X");
        assertThat(event.get("cat")).isInstanceOf(String.class);
        long start = nanos(event.get("ts"));
        assertThat(start).isNotNegative();
        Slice slice =
            new Slice(
                Objects.requireNonNull(processes.get(process)),
                Objects.requireNonNull(threads.get(thread)),
                name,
                start,
                start + nanos(event.get("dur")),
                args);
        assertThat(slice.end).isGreaterThanOrEqualTo(slice.start);
        slices.computeIfAbsent(thread, _ -> new ArrayList<>()).add(slice);
      }
    }
    slices.values().forEach(TraceEvents::assertNested);
    return slices.values().stream().flatMap(List::stream).toList();
  }

  private static void assertNested(List<Slice> thread) {
    Deque<Slice> open = new ArrayDeque<>();
    for (Slice slice :
        thread.stream()
            .sorted(
                Comparator.comparingLong(Slice::start)
                    .thenComparing(Comparator.comparingLong(Slice::end).reversed()))
            .toList()) {
      while (!open.isEmpty() && open.peek().end <= slice.start) {
        open.pop();
      }
      if (!open.isEmpty()) {
        assertThat(slice.end)
            .as("%s in %s", slice, open.peek())
            .isLessThanOrEqualTo(open.peek().end);
      }
      open.push(slice);
    }
  }

  private static long nanos(Object micros) {
    return Math.round(((Number) micros).doubleValue() * 1e3);
  }
}
