package dev.tutti.runtime.launch;

/**
 * Chooses the port of a job's store from what tells the job from others, so that all ranks find it
 * and jobs on one host mostly differ. It is below those that systems give to outgoing connections.
 */
final class JobPort {
  /** The port of a job that nothing tells from others, which is torchrun's. */
  static final String DEFAULT = "29500";

  static final String LOOPBACK = "127.0.0.1";

  private static final int FIRST = 12_288;
  private static final int BITS = 14;

  /** Spreads names that differ by little; the odd number nearest to 2^32 by the golden ratio. */
  private static final int SPREAD = 0x9E3779B9;

  private JobPort() {}

  /** Returns a port from 12288 to 28671. */
  static String of(String job) {
    return Integer.toString(FIRST + ((job.hashCode() * SPREAD) >>> (Integer.SIZE - BITS)));
  }
}
