package dev.tutti.cuda.nccl;

/** Lists results of NCCL that matter here. */
public final class NcclResult {
  /** Means that it is done. */
  public static final int SUCCESS = 0;

  /** Means that a peer failed, or the network to it. */
  public static final int REMOTE_ERROR = 6;

  /** Means that the call is still under way. */
  public static final int IN_PROGRESS = 7;

  private NcclResult() {}

  /** Returns the first of two results that is none of success, or success. */
  public static int firstFailure(int first, int second) {
    return first == SUCCESS ? second : first;
  }
}
