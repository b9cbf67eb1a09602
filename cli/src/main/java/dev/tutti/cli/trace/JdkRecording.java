package dev.tutti.cli.trace;

import dev.tutti.DType;
import dev.tutti.cli.process.Reasons;
import dev.tutti.runtime.operation.FlightRecord;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/** The reader of Tutti's events, and of the garbage collector's pauses, in a JDK recording. */
final class JdkRecording {
  private static final String ALL = "0";

  private JdkRecording() {}

  /**
   * Reads a recording.
   *
   * @throws IllegalArgumentException if the file is cut off
   */
  static void read(Path path, RankTrace trace) {
    List<RecordedEvent> events = events(path);
    // Events hold the rank in their group; the global rank is the one in the group of all ranks.
    Set<Integer> ranks =
        events.stream()
            .filter(event -> event.getEventType().getName().startsWith("dev.tutti."))
            .filter(event -> event.hasField("rank") && ALL.equals(event.getString("group")))
            .map(event -> event.getInt("rank"))
            .collect(Collectors.toSet());
    Set<List<Object>> read = new HashSet<>();
    for (RecordedEvent event : events) {
      boolean isMessage = event.getEventType().getName().equals("dev.tutti.Message");
      if (isMessage || event.getEventType().getName().equals("dev.tutti.Operation")) {
        int own = event.getInt("rank");
        boolean isOfAll = ALL.equals(event.getString("group"));
        TraceEntry entry =
            ofEvent(event, isOfAll || ranks.size() != 1 ? own : ranks.iterator().next(), isMessage);
        read.add(entry.key());
        trace.add(entry);
      }
    }
    Set<Integer> inFile = new HashSet<>(ranks);
    read.forEach(key -> inFile.add((Integer) key.getFirst()));
    readPauses(events, inFile, trace);
    readGroups(events, trace);
    Map<List<Object>, TraceEntry> records = readRecords(events, trace);
    records.keySet().removeAll(read);
    records.values().forEach(trace::add);
  }

  private static List<RecordedEvent> events(Path path) {
    try {
      return RecordingFile.readAllEvents(path);
    } catch (IOException e) {
      throw new IllegalArgumentException("not a whole recording: " + Reasons.of(e), e);
    } catch (RuntimeException e) {
      // The JDK's parser throws these for some files, with texts about its arrays.
      throw new IllegalArgumentException("not a whole recording: it is cut off or malformed", e);
    }
  }

  /** Reads the garbage collector's pauses, which stop all ranks of the process. */
  private static void readPauses(List<RecordedEvent> events, Set<Integer> ranks, RankTrace trace) {
    Map<Integer, String> causes = new HashMap<>();
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("jdk.GarbageCollection")) {
        causes.put(event.getInt("gcId"), event.getString("name") + ", " + event.getString("cause"));
      }
    }
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("jdk.GCPhasePause")) {
        String what =
            event.getString("name") + " (" + causes.getOrDefault(event.getInt("gcId"), "?") + ")";
        for (int rank : ranks) {
          long start = nanos(event.getStartTime());
          trace.pauses().add(new Pause(rank, start, nanos(event.getEndTime()), what));
        }
      }
    }
  }

  /** Reads which ranks there are: a rank that left no file has no other trace in the recording. */
  private static void readGroups(List<RecordedEvent> events, RankTrace trace) {
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("dev.tutti.Group")
          && ALL.equals(event.getString("group"))) {
        trace.addRank(event.getInt("rank"));
        trace.addGroup(ALL, IntStream.range(0, event.getInt("size")).boxed().toList());
      }
    }
  }

  /** Reads the flight records in a recording; the last one of each operation counts. */
  private static Map<List<Object>, TraceEntry> readRecords(
      List<RecordedEvent> events, RankTrace trace) {
    Map<List<Object>, TraceEntry> latest = new LinkedHashMap<>();
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("dev.tutti.FlightRecord")) {
        int rank = event.getInt("globalRank");
        trace.addRank(rank);
        trace.addGroup(event.getString("group"), TraceFiles.ranks(event.getString("ranks")));
        String json = TraceFiles.text(event.getString("entry"));
        if (!json.isEmpty() && JsonReader.read(json) instanceof Map<?, ?> fields) {
          TraceEntry entry = asEvents(TraceFiles.entry(rank, fields));
          latest.put(entry.key(), entry);
        }
      }
    }
    return latest;
  }

  /** Converts an entry to the form that events have, so that it can be compared with them. */
  static TraceEntry asEvents(TraceEntry entry) {
    return Arrays.stream(DType.values())
        .filter(dtype -> FlightRecord.dtypeName(dtype).equals(entry.dtype()))
        .findFirst()
        .map(dtype -> entry.withBytes(dtype.label(), entry.numel() * dtype.byteSize()))
        .orElseGet(() -> entry.withBytes("", 0));
  }

  private static TraceEntry ofEvent(RecordedEvent event, int rank, boolean isMessage) {
    String dtype = TraceFiles.text(event.getString("dtype"));
    long bytes = event.getLong("bytes");
    return new TraceEntry(
        rank,
        event.getString("group"),
        TraceFiles.labelled(event.getString("type")),
        event.getLong("sequence"),
        dtype,
        bytes,
        TraceEntry.sizesOf(dtype, bytes),
        "",
        "",
        isMessage ? event.getInt("peer") : -1,
        TraceFiles.text(event.getString("path")),
        event.getString("state").equals("COMPLETED") ? TraceEntry.COMPLETED : "started",
        nanos(event.getStartTime()),
        nanos(event.getEndTime()),
        false);
  }

  private static long nanos(Instant time) {
    return time.getEpochSecond() * 1_000_000_000 + time.getNano();
  }
}
