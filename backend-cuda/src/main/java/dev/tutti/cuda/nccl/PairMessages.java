package dev.tutti.cuda.nccl;

import dev.tutti.Store;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.CollectiveLauncher;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadPoolExecutor;
import org.jspecify.annotations.Nullable;

/**
 * The messages of a rank, moved as c10d's NCCL backend does when it was given no device: each pair
 * of ranks has one communicator for both directions, which their first message creates.
 * Thread-safe.
 */
final class PairMessages {
  /*
   * An abort sets "aborted" and then iterates over the paths; a thread that creates a path adds it
   * and then reads "aborted". So at least one of the two ends the path.
   */
  /** A likely reason why ranks do not meet in the communicators that operations create. */
  static final String LIKELY_CAUSE =
      "if there are ranks of PyTorch that were given a device_id, leave "
          + CudaSettings.NCCL_LAZY.name()
          + " unset for all ranks of Tutti";

  private final CudaDevice device;
  private final NcclCalls nccl;
  private final Store store;
  private final int rank;
  private final Map<Integer, NcclMessagePath> paths = new ConcurrentHashMap<>();
  private final ThreadPoolExecutor threads;
  private volatile @Nullable Throwable aborted;

  PairMessages(BackendContext context, CudaDevice device, NcclCalls nccl) {
    this.device = device;
    this.nccl = nccl;
    this.store = context.store();
    this.rank = context.rank();
    this.threads = NcclMessagePath.threads(rank);
  }

  /** Returns c10d's key for the id of the communicator of two ranks; the lower rank puts the id. */
  static String key(int rank, int peer) {
    return Math.min(rank, peer) + ":" + Math.max(rank, peer);
  }

  private NcclMessagePath make(int peer) {
    int place = rank < peer ? 0 : 1;
    String name = "rank " + rank + ", messages with rank " + peer;
    return new NcclMessagePath(
        device,
        threads,
        place,
        new NcclLink(nccl, device, store, key(rank, peer), new NcclLink.Place(name, place, 2)));
  }

  /**
   * Starts a message after the work that is in a stream.
   *
   * @throws UnsupportedOperationException if the stream is being captured into a graph
   */
  void start(NcclMessage message, CudaStream stream) {
    if (stream.isCapturing()) {
      throw new UnsupportedOperationException(
          "%s, on rank %s: cannot be captured into a graph with %s, except in a batch"
              .formatted(message.describe(), rank, CudaSettings.NCCL_LAZY.name()));
    }
    CudaEvent before = stream.record();
    try {
      NcclMessagePath path = paths.computeIfAbsent(message.peer(), this::make);
      Throwable cause = aborted;
      if (cause != null) {
        path.abort(cause);
      }
      path.start(message, before);
    } catch (RuntimeException | Error e) {
      before.close();
      throw e;
    }
  }

  boolean isWaiting() {
    return paths.values().stream().anyMatch(path -> path.pending() != null);
  }

  /** Fails the message that waits for a rank that closed after the given number of messages. */
  void leave(int peer, long last) {
    NcclMessagePath path = paths.get(peer);
    Operation op = path == null ? null : path.pendingBeyond(last);
    if (op != null) {
      op.fail(CollectiveLauncher.closed(peer), peer);
    }
  }

  /** Returns the number of messages with a rank. */
  long count(int peer) {
    NcclMessagePath path = paths.get(peer);
    return path == null ? 0 : path.count();
  }

  void look() {
    paths.values().forEach(NcclMessagePath::look);
  }

  void abort(Throwable cause) {
    aborted = cause;
    Collection<NcclMessagePath> all = paths.values();
    all.forEach(path -> path.abort(cause));
    all.forEach(NcclMessagePath::forget);
  }

  void beginClose() {
    threads.shutdown();
    paths.values().forEach(NcclMessagePath::beginClose);
  }

  void close(long deadlineNanos) {
    paths.values().forEach(path -> path.close(deadlineNanos));
  }
}
