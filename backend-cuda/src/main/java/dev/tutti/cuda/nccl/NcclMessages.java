package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.Store;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.collective.MessageMatcher;
import dev.tutti.cuda.collective.MessagePath;
import dev.tutti.cuda.collective.Messages;
import dev.tutti.cuda.share.RankLinks;
import dev.tutti.spi.BackendContext.FailureListener;
import dev.tutti.spi.Operation;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadPoolExecutor;
import org.jspecify.annotations.Nullable;

/**
 * The messages of a rank through NCCL, once sender and receiver have found each other over links of
 * their own: NCCL knows no tags and does not notice messages of different sizes, and its kernels
 * wait on the device for the other side. Thread-safe.
 */
final class NcclMessages implements Messages, NcclMessagePath.Owner {
  /*
   * The thread blocks of kernels that wait for each other must all fit on the device at once. All
   * paths of a rank together get as many blocks as the smallest devices have multiprocessors, less
   * those that a collective takes. A path has at least one block, so with more than 49 ranks, the
   * blocks fit only if at most 48 peers exchange messages at the same time. The bound applies per
   * group: groups that exchange messages on one device at the same time share its multiprocessors.
   */
  private static final int BLOCKS = 96;
  private static final int MOST_BLOCKS = 16;
  private static final int STREAMS = 14;
  private static final int SENDER = 0;
  private static final int RECEIVER = 1;

  private final CudaDevice device;
  private final NcclCalls nccl;
  private final Store store;
  private final int rank;
  private final boolean blocks;
  private final int mostBlocks;
  private final MessageMatcher matcher;
  private final List<NcclMessagePath> paths = new ArrayList<>();
  private final ArrayDeque<CudaStream> streams = new ArrayDeque<>();
  private final ThreadPoolExecutor threads;

  /**
   * Creates an object that moves a rank's messages.
   *
   * @param device this rank's device
   * @param nccl the NCCL calls
   * @param store the group's store
   * @param links the links to the peers; closed together with this object
   * @param rank this rank's number
   * @param size the number of ranks
   * @param blocks whether NCCL calls may block
   * @param onFailure told of lost links
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
    this.threads = NcclMessagePath.threads(rank);
    streams.addAll(access().reserve(device).take(Math.min(directions(size), STREAMS)));
    @Nullable MessagePath[] sends = new @Nullable MessagePath[size];
    @Nullable MessagePath[] receives = new @Nullable MessagePath[size];
    for (int peer = 0; peer < size; peer++) {
      if (peer != rank) {
        sends[peer] = path(peer, true);
        receives[peer] = path(peer, false);
      }
    }
    try {
      matcher = new MessageMatcher(device, links, rank, null, sends, receives, onFailure);
      matcher.listen();
    } catch (RuntimeException | Error e) {
      giveStreams();
      throw e;
    }
  }

  private static int directions(int size) {
    return 2 * (size - 1);
  }

  /** Returns the number of thread blocks that a message may have in a group of the given size. */
  static int mostBlocks(int size) {
    return Math.clamp(BLOCKS / directions(size), 1, MOST_BLOCKS);
  }

  private NcclMessagePath path(int peer, boolean sends) {
    NcclMessagePath made =
        new NcclMessagePath(this, peer, sends ? SENDER : RECEIVER, link(peer, sends));
    paths.add(made);
    return made;
  }

  /** Returns the link that creates the communicator of one direction. */
  NcclLink link(int peer, boolean sends) {
    return new NcclLink(
        nccl,
        device,
        store,
        "tutti/message/" + (sends ? rank + "/" + peer : peer + "/" + rank),
        new NcclLink.Place(
            "rank " + rank + ", messages " + (sends ? "to" : "from") + " rank " + peer,
            sends ? SENDER : RECEIVER,
            2),
        !sends,
        new NcclLink.Width(mostBlocks, blocks, true));
  }

  @Override
  public CudaDevice device() {
    return device;
  }

  @Override
  public void execute(Runnable task) {
    threads.execute(task);
  }

  @Override
  public CudaStream takeStream() {
    CudaStream stream;
    synchronized (streams) {
      stream = streams.pollFirst();
    }
    return stream == null ? access().reserve(device).take() : stream;
  }

  private void giveStreams() {
    synchronized (streams) {
      streams.forEach(access().reserve(device)::give);
      streams.clear();
    }
  }

  @Override
  public void send(Operation op, int peer, int tag, long address, long bytes) {
    matcher.send(op, peer, tag, address, bytes);
  }

  @Override
  public void receive(Operation op, int peer, int tag, long address, long bytes) {
    matcher.receive(op, peer, tag, address, bytes);
  }

  @Override
  public boolean isWaiting() {
    return matcher.isWaiting();
  }

  @Override
  public void leave(int peer, String farewell) {
    matcher.leave(peer);
  }

  @Override
  public void look() {
    paths.forEach(NcclMessagePath::look);
  }

  @Override
  public void abort(Throwable cause) {
    paths.forEach(path -> path.abort(cause));
    matcher.abort(cause);
    paths.forEach(NcclMessagePath::forget);
  }

  @Override
  public void beginClose() {
    matcher.close();
    threads.shutdown();
    paths.forEach(NcclMessagePath::beginClose);
  }

  @Override
  public void close(long deadlineNanos) {
    paths.forEach(path -> path.close(deadlineNanos));
    giveStreams();
  }
}
