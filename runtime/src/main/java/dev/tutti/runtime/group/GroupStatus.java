package dev.tutti.runtime.group;

import dev.tutti.TuttiException;
import dev.tutti.runtime.operation.PendingOperations.Wait;
import dev.tutti.runtime.operation.RankProgress;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reports where a rank stands in one group, as plain maps, lists, strings and numbers. */
final class GroupStatus {
  private GroupStatus() {}

  static Map<String, Object> of(Group group) {
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
    map.put("pending", group.pending.waits().stream().map(GroupStatus::of).toList());
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
}
