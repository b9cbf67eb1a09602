package dev.tutti.cuda.nccl;

/** The NCCL result codes that matter here. */
public final class NcclResult {
  /** The call succeeded. */
  public static final int SUCCESS = 0;

  /** A peer failed, or the network to it. */
  public static final int REMOTE_ERROR = 6;

  /** The call is still in progress. */
  public static final int IN_PROGRESS = 7;

  private NcclResult() {}

  /** Returns the first of two results that is not success, or else success. */
  public static int firstFailure(int first, int second) {
    return first == SUCCESS ? second : first;
  }
}
