package dev.tutti.peer.libtorch;

import java.util.List;
import java.util.function.Supplier;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.Work;
import org.jspecify.annotations.Nullable;

/**
 * An operation that has been started: what to wait for and where its result will be.
 *
 * @param work libtorch's handle, null when the operation is already over
 * @param type element type of the result
 * @param result reads the result bytes, to be called once the work is over
 * @param reportSource whether the sender's rank belongs into the report
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

  /** An operation this rank has no part in. */
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

  /** What an operation left on this rank; {@code source} is −1 unless asked for. */
  @SuppressWarnings("ArrayRecordComponent")
  record Outcome(PeerType type, byte[] bytes, int source) {}
}
