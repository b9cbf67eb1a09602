package dev.tutti.cuda;

import dev.tutti.Store;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.spi.BackendContext.FailureListener;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Moves the messages of a rank by NCCL, once sender and receiver have found each other over links
 * of their own: NCCL knows no tags, does not notice a message of another size, and its kernels wait
 * on the device for the other side. Any thread.
 */
final class NcclMessages {
  /*
   * Blocks of kernels that wait for each other must all find room on the device. All paths of a rank
   * together get as many as the smallest devices have processors, less those that a collective takes.
   * A path has one block at least, so above 49 ranks those fit of 48 peers that have messages at once.
   * The bound is a group's: groups that have messages on a device at once share its processors.
   */
  private static final int BLOCKS = 96;
  private static final int MOST_BLOCKS = 16;
  private static final int STREAMS = 14;
  private static final long IDLE_SECONDS = 1;

  private final CudaDevice device;
  private final NcclCalls nccl;
  private final Store store;
  private final int rank;
  private final boolean blocks;
  private final int mostBlocks;
  private final MessageBoard board;
  private final List<NcclMessagePath> paths = new ArrayList<>();
  private final ArrayDeque<CudaStream> streams = new ArrayDeque<>();
  private final ThreadPoolExecutor threads;

  /**
   * Creates the messages of a rank.
   *
   * @param device of this rank
   * @param nccl to be called
   * @param store of the group
   * @param links to the peers; closed with this
   * @param rank this rank
   * @param size number of ranks
   * @param blocks whether calls of NCCL shall block
   * @param onFailure hears of links that are lost
   */
  NcclMessages(
      CudaDevice device,
      NcclCalls nccl,
      Store store,
      RankLinks links,
      int rank,
      int size,
      boolean blocks,
      FailureListener onFailure) {
    this.device = device;
    this.nccl = nccl;
    this.store = store;
    this.rank = rank;
    this.blocks = blocks;
    this.mostBlocks = mostBlocks(size);
    this.threads =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            task ->
                Thread.ofPlatform().daemon().name("tutti-nccl-message-" + rank).unstarted(task));
    streams.addAll(device.reserve().take(Math.min(directions(size), STREAMS)));
    @Nullable MessagePath[] sends = new @Nullable MessagePath[size];
    @Nullable MessagePath[] receives = new @Nullable MessagePath[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        sends[peer] = path(peer, true);
        receives[peer] = path(peer, false);
      }
    }
    board = new MessageBoard(device, links, rank, null, sends, receives, onFailure);
    boolean good = false;
    try {
      board.listen();
      good = true;
    } finally {
      if (!good) {
        giveStreams();
      }
    }
  }

  private static int directions(int size) {
    return 2 * (size - 1);
  }

  /** Returns how many blocks of threads a message of a group of so many ranks may have. */
  static int mostBlocks(int size) {
    return Math.clamp(BLOCKS / directions(size), 1, MOST_BLOCKS);
  }

  /** Tells whether calls of NCCL shall block. */
  boolean blocks() {
    return blocks;
  }

  private NcclMessagePath path(int peer, boolean sends) {
    NcclMessagePath made = new NcclMessagePath(this, peer, sends);
    paths.add(made);
    return made;
  }

  CudaDevice device() {
    return device;
  }

  NcclCalls nccl() {
    return nccl;
  }

  Store store() {
    return store;
  }

  int rank() {
    return rank;
  }

  /** Returns how many blocks of threads a message may have. */
  int mostBlocks() {
    return mostBlocks;
  }

  /**
   * Runs the messages of a path, which has one such task at a time.
   *
   * @throws RejectedExecutionException if the group is closed
   */
  void execute(Runnable task) {
    threads.execute(task);
  }

  /** Returns a stream that nobody else has; the device may have to make it. */
  CudaStream takeStream() {
    CudaStream stream;
    synchronized (streams) {
      stream = streams.pollFirst();
    }
    return stream == null ? device.reserve().take() : stream;
  }

  private void giveStreams() {
    synchronized (streams) {
      streams.forEach(device.reserve()::give);
      streams.clear();
    }
  }

  /** Starts a send. */
  void send(Operation op, int peer, int tag, long address, long bytes) {
    board.send(op, peer, tag, address, bytes);
  }

  /** Starts a receive, of {@link MessageBoard#ANY} too. */
  void receive(Operation op, int peer, int tag, long address, long bytes) {
    board.receive(op, peer, tag, address, bytes);
  }

  /** Tells whether a send or receive has not found its other side yet. */
  boolean isWaiting() {
    return board.isWaiting();
  }

  /** Fails what waits for a rank that closed its group. */
  void leave(int peer) {
    board.leave(peer);
  }

  /** Fails messages of which NCCL says that they cannot end. */
  void look() {
    paths.forEach(NcclMessagePath::look);
  }

  /** Ends what runs, without a result; never blocks. */
  void abort(Throwable cause) {
    paths.forEach(path -> path.abort(cause));
    board.abort(cause);
    paths.forEach(NcclMessagePath::forget);
  }

  /** Begins to free the communicators, all at once; nothing may run. */
  void beginClose() {
    board.close();
    threads.shutdown();
    paths.forEach(NcclMessagePath::beginClose);
  }

  /** Frees everything. */
  void close(long deadlineNanos) {
    paths.forEach(path -> path.close(deadlineNanos));
    giveStreams();
  }
}
