package dev.tutti.cli.trace;

import dev.tutti.DType;
import dev.tutti.cli.process.Reasons;
import dev.tutti.json.Json;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.JobRecords.Taken;
import dev.tutti.runtime.view.Pause;
import dev.tutti.runtime.view.RankOperation;
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
  static void read(Path path, JobRecords trace) {
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
        RankOperation call =
            ofEvent(event, isOfAll || ranks.size() != 1 ? own : ranks.iterator().next(), isMessage);
        read.add(call.key());
        trace.add(call);
      }
    }
    Set<Integer> inFile = new HashSet<>(ranks);
    read.forEach(key -> inFile.add((Integer) key.getFirst()));
    readPauses(events, inFile, trace);
    readGroups(events, trace);
    Map<List<Object>, RankOperation> records = readRecords(events, trace);
    records.keySet().removeAll(read);
    records.values().forEach(trace::add);
    long end = events.stream().mapToLong(event -> nanos(event.getEndTime())).max().orElse(0);
    inFile.forEach(rank -> trace.taken().put(rank, new Taken(end, 0)));
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
  private static void readPauses(List<RecordedEvent> events, Set<Integer> ranks, JobRecords trace) {
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
  private static void readGroups(List<RecordedEvent> events, JobRecords trace) {
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("dev.tutti.Group")
          && ALL.equals(event.getString("group"))) {
        trace.addRank(event.getInt("rank"));
        trace.addGroup(ALL, IntStream.range(0, event.getInt("size")).boxed().toList());
      }
    }
  }

  /** Reads the flight records in a recording; the last one of each operation counts. */
  private static Map<List<Object>, RankOperation> readRecords(
      List<RecordedEvent> events, JobRecords trace) {
    Map<List<Object>, RankOperation> latest = new LinkedHashMap<>();
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("dev.tutti.FlightRecord")) {
        int rank = event.getInt("globalRank");
        trace.addRank(rank);
        trace.addGroup(
            event.getString("group"), FlightRecordReader.ranks(event.getString("ranks")));
        String json = FlightRecordReader.text(event.getString("entry"));
        if (!json.isEmpty() && Json.read(json) instanceof Map<?, ?> fields) {
          RankOperation call = FlightRecordReader.operation(rank, fields).bare();
          latest.put(call.key(), call);
        }
      }
    }
    return latest;
  }

  private static RankOperation ofEvent(RecordedEvent event, int rank, boolean isMessage) {
    String dtype = FlightRecordReader.text(event.getString("dtype"));
    return new RankOperation(
        rank,
        event.getString("group"),
        new Issued(
            FlightRecordReader.labelled(event.getString("type")),
            event.getLong("sequence"),
            "",
            dtype,
            elements(dtype, event.getLong("bytes")),
            -1,
            ""),
        isMessage ? event.getInt("peer") : -1,
        isMessage ? event.getInt("tag") : 0,
        FlightRecordReader.text(event.getString("path")),
        event.getString("state").equals("COMPLETED"),
        nanos(event.getStartTime()),
        nanos(event.getEndTime()),
        false);
  }

  private static long elements(String dtype, long bytes) {
    return Arrays.stream(DType.values())
        .filter(type -> type.label().equals(dtype))
        .mapToLong(type -> bytes / type.byteSize())
        .findFirst()
        .orElse(bytes);
  }

  private static long nanos(Instant time) {
    return time.getEpochSecond() * 1_000_000_000 + time.getNano();
  }
}
