package dev.tutti;

/**
 * Blocks a device stream until it is told to release it (c10d: {@code StreamBlock}).
 *
 * <p>The stream that is current when the block is made is blocked from then on. {@link #release()}
 * ends that. Any thread may call any method. The block may be closed before the stream gets to it;
 * closing a block that was never released releases it.
 */
@Incubating
public interface StreamBlock extends AutoCloseable {
  /** Returns what the device last reported. */
  StreamBlockStatus status();

  /** Releases the stream; the second and later calls do nothing. */
  default void release() {
    abort();
  }

  /** Releases the stream, by c10d's name for it. */
  void abort();

  /** Releases the stream and drops the block, without waiting for the device. */
  @Override
  void close();
}
