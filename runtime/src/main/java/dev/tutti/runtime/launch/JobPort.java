package dev.tutti.runtime.launch;

/**
 * Chooses the port of a job's store from whatever distinguishes the job from others, so that all
 * ranks find it and jobs on the same host mostly differ. The port is below those that operating
 * systems assign to outgoing connections.
 */
final class JobPort {
  /** The port of a job that nothing distinguishes from others; it is torchrun's default. */
  static final String DEFAULT = "29500";

  static final String LOOPBACK = "127.0.0.1";

  private static final int FIRST = 12_288;
  private static final int BITS = 14;

  /**
   * Spreads names that differ only slightly; the odd number nearest to 2^32 divided by the golden
   * ratio.
   */
  private static final int SPREAD = 0x9E3779B9;

  private JobPort() {}

  /** Returns a port from 12288 to 28671. */
  static String of(String job) {
    return Integer.toString(FIRST + ((job.hashCode() * SPREAD) >>> (Integer.SIZE - BITS)));
  }
}
