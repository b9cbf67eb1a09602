package dev.tutti.cli.status;

import dev.tutti.OpType;
import dev.tutti.cli.trace.JsonReader;
import dev.tutti.runtime.operation.RankProgress;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.GZIPInputStream;
import org.jspecify.annotations.Nullable;

/**
 * What a rank reports about itself.
 *
 * @param rank the rank among all ranks
 * @param size the number of ranks
 * @param process the host and process id
 * @param groups the groups that the rank is in
 * @param record the last operations of the rank
 */
record RankAnswer(int rank, int size, String process, List<InGroup> groups, Map<?, ?> record) {
  private static final int MOST_BYTES = 64 << 20;

  /**
   * The state of a rank in a group.
   *
   * @param name the name of the group
   * @param ranks the members of the group, as ranks among all ranks
   * @param failure the failure, or empty
   * @param issued the number of the rank's last collective
   * @param pending the operations that have not ended, longest first
   * @param joining the call in which the rank waits for others to create a group, or empty
   * @param thread the position of the thread that created the group, or empty
   */
  record InGroup(
      String name,
      List<Integer> ranks,
      String failure,
      long issued,
      List<Waiting> pending,
      String joining,
      String thread) {}

  /**
   * An operation that has not ended.
   *
   * @param op the operation, whose peer is a rank of the group
   * @param seconds how long it has waited
   */
  record Waiting(RankProgress.Pending op, double seconds) {}

  /**
   * Reads an answer.
   *
   * @throws IllegalArgumentException if it is not an answer
   */
  static RankAnswer read(byte[] zipped) {
    try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(zipped))) {
      String json = new String(in.readNBytes(MOST_BYTES), StandardCharsets.UTF_8);
      if (JsonReader.read(json) instanceof Map<?, ?> map) {
        return of(map);
      }
    } catch (IOException e) {
      throw new IllegalArgumentException("cannot read the answer of a rank: " + e, e);
    }
    throw new IllegalArgumentException("the answer of a rank is not a status");
  }

  private static RankAnswer of(Map<?, ?> map) {
    return new RankAnswer(
        (int) number(map.get("rank")),
        (int) number(map.get("size")),
        map.get("host") + "/" + map.get("pid"),
        maps(map.get("groups")).stream().map(RankAnswer::group).toList(),
        map.get("flight_record") instanceof Map<?, ?> record ? record : Map.of());
  }

  private static List<Map<?, ?>> maps(@Nullable Object value) {
    List<Map<?, ?>> maps = new ArrayList<>();
    if (value instanceof List<?> all) {
      for (Object each : all) {
        if (each instanceof Map<?, ?> map) {
          maps.add(map);
        }
      }
    }
    return maps;
  }

  private static InGroup group(Map<?, ?> map) {
    return new InGroup(
        text(map.get("name")),
        map.get("ranks") instanceof List<?> ranks
            ? ranks.stream().map(rank -> (int) number(rank)).toList()
            : List.of(),
        text(map.get("failure")),
        number(map.get("issued")),
        maps(map.get("pending")).stream().map(RankAnswer::waiting).toList(),
        text(map.get("joining")),
        text(map.get("thread")));
  }

  private static Waiting waiting(Map<?, ?> map) {
    String label = text(map.get("operation"));
    OpType type =
        Arrays.stream(OpType.values())
            .filter(each -> each.label().equals(label))
            .findFirst()
            .orElse(OpType.UNKNOWN);
    return new Waiting(
        new RankProgress.Pending(
            type,
            number(map.get("number")),
            (int) number(map.get("peer")),
            (int) number(map.get("tag"))),
        map.get("waited_ms") instanceof Number millis ? millis.doubleValue() / 1e3 : 0);
  }

  private static String text(@Nullable Object value) {
    return value instanceof String text ? text : "";
  }

  private static long number(@Nullable Object value) {
    return value instanceof Number number ? number.longValue() : 0;
  }
}
