package dev.tutti.runtime.group;

import dev.tutti.TuttiException;
import dev.tutti.json.Json;
import dev.tutti.runtime.operation.PendingOperations.Wait;
import dev.tutti.runtime.operation.RankProgress;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.GZIPOutputStream;

/** Reports where a rank stands in all its groups. Any thread may call its methods. */
record JobStatus(int rank, int size, FlightRecords records) {
  /** How many of its last operations a rank reports, for clients that compare ranks. */
  private static final int RECENT = 64;

  /** Returns the status as plain maps, lists, strings and numbers. */
  Map<String, Object> toMap() {
    List<Group> groups = records.openGroups();
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("rank", rank);
    map.put("size", size);
    map.put("host", host());
    map.put("pid", ProcessHandle.current().pid());
    map.put("groups", groups.stream().map(JobStatus::of).toList());
    map.put("pauses", JvmPauses.list());
    map.put(
        "flight_record",
        records.toMap(groups.stream().map(group -> group.flightRecord(RECENT)).toList()));
    return map;
  }

  private static Map<String, Object> of(Group group) {
    RankProgress progress = group.standing();
    TuttiException failure = group.failures.groupFailure();
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("name", group.identity.name());
    map.put("rank", group.identity.rank());
    map.put("ranks", group.identity.globalRanks());
    map.put("backends", group.backendNames);
    map.put("state", failure == null ? group.isClosed() ? "closing" : "open" : "failed");
    map.put("failure", failure == null ? "" : String.valueOf(failure.getMessage()));
    map.put("issued", progress.issued());
    map.put("pending", group.pending.waits().stream().map(JobStatus::of).toList());
    map.put("joining", progress.joining());
    map.put("refusal", progress.refusal());
    map.put("thread", progress.elsewhere());
    map.put("progress", progress.encode());
    map.put("paths", group.paths.read());
    return map;
  }

  private static Map<String, Object> of(Wait wait) {
    RankProgress.Pending op = wait.op();
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("operation", op.type().label());
    map.put("number", op.sequence());
    map.put("peer", op.type().isPointToPoint() ? op.peer() : -1);
    map.put("tag", op.tag());
    map.put("waited_ms", wait.nanos() / 1e6);
    return map;
  }

  /** Returns the status as JSON. */
  String toJson() {
    return Json.write(toMap());
  }

  /** Returns the status as compressed JSON. */
  byte[] zipped() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream zip = new GZIPOutputStream(bytes)) {
      zip.write(toJson().getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static String host() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (UnknownHostException e) {
      return "";
    }
  }
}
