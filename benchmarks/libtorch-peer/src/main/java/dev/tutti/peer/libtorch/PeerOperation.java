package dev.tutti.peer.libtorch;

import java.util.List;
import java.util.function.Supplier;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.Work;
import org.jspecify.annotations.Nullable;

/**
 * An operation that has been started: the handle to wait for and the place of its result.
 *
 * @param work libtorch's handle, null if the operation is already over
 * @param type element type of the result
 * @param result reads the result bytes; must be called only once the work is over
 * @param reportSource whether the report includes the sender's rank
 * @param timeoutMillis limit for the wait
 */
record PeerOperation(
    @Nullable Work work,
    PeerType type,
    Supplier<byte[]> result,
    boolean reportSource,
    int timeoutMillis) {

  /** Result of an operation that leaves no data on this rank. */
  static final Supplier<byte[]> NOTHING = () -> new byte[0];

  /** An operation in which this rank has no part. */
  static final PeerOperation NONE = new PeerOperation(null, PeerType.UINT8, NOTHING, false, 0);

  static Supplier<byte[]> contentOf(List<PeerBuffer> buffers) {
    return () -> PeerBuffer.content(buffers);
  }

  Outcome await() {
    if (work == null) {
      return new Outcome(type, result.get(), -1);
    }
    try (Milliseconds timeout = new Milliseconds(timeoutMillis)) {
      if (!work._wait(timeout)) {
        throw new IllegalStateException("wait returned false");
      }
    }
    int source = reportSource ? work.sourceRank() : -1;
    work.close();
    return new Outcome(type, result.get(), source);
  }

  /** What an operation left on this rank; {@code source} is −1 unless requested. */
  @SuppressWarnings("ArrayRecordComponent")
  record Outcome(PeerType type, byte[] bytes, int source) {}
}
