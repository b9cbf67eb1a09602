package dev.tutti.gloo.hier;

import dev.tutti.gloo.shm.Parts;
import dev.tutti.gloo.shm.ShmLayout;

/** Tells tests how the memory that ranks share is divided. */
public final class Stages {
  /** Largest message that goes through a slot, in bytes. */
  public static final int SLOT_BYTES = ShmLayout.SLOT_BYTES;

  /** Bytes from which on the ranks of a host all-reduce in parts with other hosts. */
  public static final long PARTS_FROM = TwoLevelAllReduce.PARTS_FROM;

  private Stages() {}

  /** Returns the bytes of a stage. */
  public static long bytes(int ranks, long budget) {
    return ShmLayout.within(ranks, budget).stageBytes();
  }

  /** Returns how many bytes of a stage each rank gets. */
  public static long piece(int ranks, long budget) {
    return Parts.piece(bytes(ranks, budget), ranks);
  }
}
