package dev.tutti.runtime.view;

import dev.tutti.json.Json;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Where a rank stands.
 *
 * @param process the host and process id, or empty
 * @param groups where it stands in each group
 */
record RankStanding(String process, SortedMap<String, InGroup> groups) {
  private static final int MOST_BYTES = 64 << 20;

  /**
   * Where a rank stands in a group.
   *
   * @param group the name of the group
   * @param failure the failure of the group, or empty
   * @param progress how far the rank has come
   * @param waits the operations that have not ended, longest first
   */
  record InGroup(String group, String failure, RankProgress progress, List<Wait> waits) {
    /** Returns the operation that has waited longest, or null if none waits. */
    @Nullable Wait longest() {
      return waits.isEmpty() ? null : waits.getFirst();
    }

    /** Returns how long it has waited, or -1 if none waits. */
    private long nanos() {
      return waits.isEmpty() ? -1 : Math.max(0, waits.getFirst().nanos());
    }
  }

  /**
   * An operation that has not ended.
   *
   * @param op the operation, whose peer is a rank of the group
   * @param nanos how long it has waited, or -1 if that is not known
   */
  record Wait(Pending op, long nanos) {}

  /** Returns the group in which the rank has waited longest, or else its first; null if in none. */
  @Nullable InGroup foremost() {
    return groups.values().stream().max(Comparator.comparingLong(InGroup::nanos)).orElse(null);
  }

  /**
   * Reads what a rank answered about itself.
   *
   * @throws IllegalArgumentException if it is not an answer
   */
  static Map<?, ?> unzip(byte[] zipped) {
    try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(zipped))) {
      String json = new String(in.readNBytes(MOST_BYTES), StandardCharsets.UTF_8);
      if (Json.read(json) instanceof Map<?, ?> map) {
        return map;
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot read the answer of a rank: " + e, e);
    }
    throw new IllegalArgumentException("the answer of a rank is not a status");
  }

  /**
   * Reads an answer, and adds what it has of operations to the records.
   *
   * @throws IllegalArgumentException if it is not an answer
   */
  static RankStanding of(Map<?, ?> answer, int rank, JobRecords records) {
    if (answer.get("flight_record") instanceof Map<?, ?> record) {
      FlightRecordReader.add(record, rank, records);
    }
    for (Map<?, ?> pause : maps(answer.get("pauses"))) {
      records
          .pauses()
          .add(
              new Pause(
                  rank,
                  FlightRecordReader.number(pause.get("start_ns"), 0),
                  FlightRecordReader.number(pause.get("end_ns"), 0),
                  FlightRecordReader.text(pause.get("what"))));
    }
    SortedMap<String, InGroup> groups = new TreeMap<>();
    for (Map<?, ?> group : maps(answer.get("groups"))) {
      String name = FlightRecordReader.text(group.get("name"));
      records.addGroup(name, FlightRecordReader.ranks(String.valueOf(group.get("ranks"))));
      groups.put(
          name,
          new InGroup(
              name,
              FlightRecordReader.text(group.get("failure")),
              RankProgress.decode(FlightRecordReader.text(group.get("progress"))),
              maps(group.get("pending")).stream().map(RankStanding::waiting).toList()));
    }
    return new RankStanding(answer.get("host") + "/" + answer.get("pid"), groups);
  }

  private static List<Map<?, ?>> maps(@Nullable Object value) {
    List<Map<?, ?>> maps = new ArrayList<>();
    for (Object each : value instanceof List<?> all ? all : List.of()) {
      if (each instanceof Map<?, ?> map) {
        maps.add(map);
      }
    }
    return maps;
  }

  private static Wait waiting(Map<?, ?> map) {
    return new Wait(
        new Pending(
            FlightRecordReader.labelled(FlightRecordReader.text(map.get("operation"))),
            FlightRecordReader.number(map.get("number"), 0),
            (int) FlightRecordReader.number(map.get("peer"), -1),
            (int) FlightRecordReader.number(map.get("tag"), 0)),
        map.get("waited_ms") instanceof Number millis ? (long) (millis.doubleValue() * 1e6) : 0);
  }

  /**
   * Finds out where a rank stood when its record was taken.
   *
   * @param bare the groups of which some records contain neither operators nor roots
   */
  static RankStanding of(int rank, JobRecords records, Set<String> bare) {
    SortedMap<String, InGroup> groups = new TreeMap<>();
    records
        .groups()
        .forEach(
            (group, ranks) -> {
              if (ranks.contains(rank)) {
                groups.put(group, inGroup(group, rank, records, bare.contains(group)));
              }
            });
    return new RankStanding("", groups);
  }

  private static InGroup inGroup(String group, int rank, JobRecords records, boolean isBare) {
    List<RankOperation> calls =
        records.operations().getOrDefault(rank, List.of()).stream()
            .filter(call -> call.group().equals(group))
            .toList();
    List<Issued> issued =
        calls.stream()
            .filter(call -> !call.isMessage())
            .map(call -> isBare ? call.bare().call() : call.call())
            .toList();
    List<Wait> waits =
        calls.stream()
            .filter(call -> !call.isCompleted())
            .map(
                call -> new Wait(call.pending(), call.startNanos() == 0 ? -1 : records.nanos(call)))
            .sorted(Comparator.comparingLong(Wait::nanos).reversed())
            .toList();
    List<Pending> pending = waits.stream().map(Wait::op).toList();
    return new InGroup(group, "", RankProgress.ofCalls(issued, pending), waits);
  }
}
