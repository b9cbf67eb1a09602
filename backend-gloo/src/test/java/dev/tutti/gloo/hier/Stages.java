package dev.tutti.gloo.hier;

import dev.tutti.gloo.shm.Parts;
import dev.tutti.gloo.shm.ShmLayout;

/** The division of the ranks' shared memory, for tests. */
public final class Stages {
  /** The largest message that fits in a slot, in bytes. */
  public static final int SLOT_BYTES = ShmLayout.SLOT_BYTES;

  /** The size in bytes from which the ranks of a host all-reduce in parts with other hosts. */
  public static final long PARTS_FROM = TwoLevelAllReduce.PARTS_FROM;

  private Stages() {}

  /** Returns the size of a stage in bytes. */
  public static long bytes(int ranks, long budget) {
    return ShmLayout.within(ranks, budget).stageBytes();
  }

  /** Returns how many bytes of a stage each rank gets. */
  public static long piece(int ranks, long budget) {
    return Parts.piece(bytes(ranks, budget), ranks);
  }
}
