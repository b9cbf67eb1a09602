package dev.tutti.runtime.failure;

import dev.tutti.OpType;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import dev.tutti.runtime.operation.RankProgress.Pending;
import java.util.List;
import java.util.Map;

/** What a rank may answer to those who ask where it stands. */
final class Said {
  static final Said IN_SET_UP = new Said(1, RankProgress.ofSetUp(JobModel.GROUP));
  static final Said ABSENT = new Said(2, RankProgress.ofCalls(List.of(), List.of()));
  static final Said CALLED = ofCall(3, OpType.BARRIER, -1);
  static final Said CALLED_OTHER = ofCall(4, OpType.BROADCAST, 0);
  static final Said RECEIVES = new Said(5, ABSENT.progress);
  static final Said CLOSED =
      new Said(
          6,
          new RankProgress(
              true, 0, "", "", "", Map.of(), Map.of(), List.of(), List.of(), List.of()));

  final int code;
  final RankProgress progress;

  private Said(int code, RankProgress progress) {
    this.code = code;
    this.progress = progress;
  }

  private static Said ofCall(int code, OpType type, int root) {
    return new Said(
        code, RankProgress.ofCalls(List.of(new Issued(type, 1, "", "", -1, root, "")), List.of()));
  }

  /** Returns the answer of one of the ranks, each of which receives from the next one. */
  RankProgress by(int rank, int size) {
    return this != RECEIVES
        ? progress
        : new RankProgress(
            false,
            0,
            "",
            "",
            "",
            Map.of(),
            Map.of(),
            List.of(new Pending(OpType.RECV, 1, (rank + 1) % size, 0)),
            List.of(),
            List.of());
  }
}
