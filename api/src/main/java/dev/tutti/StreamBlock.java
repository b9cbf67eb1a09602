package dev.tutti;

/**
 * A block on a device stream, which holds the stream until it is released (c10d: {@code
 * StreamBlock}).
 *
 * <p>The stream that is current when the block is created is blocked from then on, until {@link
 * #release()} is called. Any thread may call any method. The block may be closed before the stream
 * reaches it; closing a block that was never released releases it.
 */
@Incubating
public interface StreamBlock extends AutoCloseable {
  /** Returns the status that the device last reported. */
  StreamBlockStatus status();

  /** Releases the stream; further calls have no effect. */
  default void release() {
    abort();
  }

  /** Releases the stream, under c10d's name for this. */
  void abort();

  /** Releases the stream and discards the block, without waiting for the device. */
  @Override
  void close();
}
