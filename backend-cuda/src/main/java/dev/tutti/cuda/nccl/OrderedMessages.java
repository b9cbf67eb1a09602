package dev.tutti.cuda.nccl;

import dev.tutti.BackendException;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Store;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.collective.CollectiveLauncher;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The messages of a rank, moved as c10d's NCCL backend does: in the group's communicator, in one
 * order with the collectives; a batch is one call. Thread-safe.
 */
final class OrderedMessages {
  /*
   * PyTorch puts the messages of two ranks into the group's communicator only if its user named a
   * device at init; otherwise it uses a communicator of the two ranks, except for batches. NCCL
   * does not notice such a difference: both ranks just wait. So a rank that waits here looks for
   * the key of that other communicator, and names the likely cause at the deadline.
   *
   * Messages that a rank sent before it closed still arrive, because NCCL accepts small messages
   * before their receiver is ready. So the messages of two ranks are numbered, and a rank that
   * closes states how many it had; messages beyond that fail.
   */
  static final String REMEDY =
      "give it one in init_process_group, or set "
          + CudaSettings.NCCL_LAZY.name()
          + "=1 for all ranks of Tutti";

  private static final String NO_TAGS =
      "NCCL has no tags; send with tag 0, as the messages between two ranks match in their order";

  private final CudaDevice device;
  private final NcclLauncher launcher;
  private final Store store;
  private final int rank;
  private final boolean mayMeetPytorch;
  private final PeerMessageCounts counts;
  private final @Nullable PairMessages pairs;
  private final Map<Thread, List<NcclMessage>> batches = new ConcurrentHashMap<>();

  /**
   * Creates an object that moves a rank's messages.
   *
   * @param context the context of the group
   * @param device this rank's device
   * @param launcher the group's launcher
   * @param mayMeetPytorch whether some ranks run PyTorch, or may do so because they were not asked
   * @param pairs moves messages outside of batches; null if the launcher does
   */
  OrderedMessages(
      BackendContext context,
      CudaDevice device,
      NcclLauncher launcher,
      boolean mayMeetPytorch,
      @Nullable PairMessages pairs) {
    this.device = device;
    this.launcher = launcher;
    this.store = context.store();
    this.rank = context.rank();
    this.mayMeetPytorch = mayMeetPytorch;
    this.counts = new PeerMessageCounts(context.size());
    this.pairs = pairs;
  }

  /** Returns the features that the group lacks because of its messages, with the reasons. */
  Map<Feature, String> missingFeatures() {
    Map<Feature, String> all = new EnumMap<>(Feature.class);
    all.put(Feature.TAGS, NO_TAGS);
    if (mayMeetPytorch) {
      all.put(
          Feature.DETECTS_DEAD_PEERS,
          "with ranks of PyTorch, only NCCL reports which ranks are gone, and only while operations"
              + " are running");
    }
    return all;
  }

  /**
   * Returns whether barriers of a group that also has a backend for the host run on NCCL: ranks of
   * PyTorch without a {@code device_id} use the host's backend for them.
   */
  boolean takesBarriers() {
    return pairs == null;
  }

  /** Returns whether some ranks run PyTorch, or may do so because they were not asked. */
  boolean mayMeetPytorch() {
    return mayMeetPytorch;
  }

  /**
   * Starts a message.
   *
   * @param sends whether this rank is the sender
   * @param address the address of the elements
   * @param bytes the size of the elements
   */
  void start(Operation op, int peer, boolean sends, long address, long bytes) {
    List<NcclMessage> collected = batches.get(Thread.currentThread());
    if (collected == null && pairs != null) {
      // Its path counts this message.
      pairs.start(new NcclMessage(op, peer, sends, address, bytes, 0), device.currentStream());
      return;
    }
    NcclMessage message =
        new NcclMessage(op, peer, sends, address, bytes, counts.next(peer, sends));
    if (collected != null) {
      collected.add(message);
    } else {
      launcher.exchange(List.of(message));
    }
  }

  /** Begins to collect the messages that this thread starts. */
  void beginBatch() {
    batches.put(Thread.currentThread(), new ArrayList<>());
  }

  /** Starts, as one, the messages that this thread has collected since {@link #beginBatch}. */
  void endBatch() {
    List<NcclMessage> collected = batches.remove(Thread.currentThread());
    if (collected == null || collected.isEmpty()) {
      return;
    }
    try {
      launcher.exchange(collected);
    } catch (RuntimeException | LinkageError e) {
      collected.forEach(message -> message.op().fail(e, -1));
    }
  }

  /** Returns whether a message may wait for its other side. */
  boolean isWaiting() {
    return !launcher.pendingMessages().isEmpty() || (pairs != null && pairs.isWaiting());
  }

  /**
   * Fails the messages that wait for a rank that closed its group.
   *
   * @param farewell that rank's {@link #farewell}
   */
  void leave(int peer, String farewell) {
    PeerMessageCounts.Counts its = PeerMessageCounts.parse(farewell, rank);
    for (NcclMessage message : launcher.pendingMessages()) {
      long last = message.sends() ? its.received() : its.sent();
      if (message.peer() == peer && message.number() > last) {
        message.op().fail(CollectiveLauncher.closed(peer), peer);
      }
    }
    if (pairs != null) {
      pairs.leave(peer, its.inPair());
    }
  }

  /** Returns a summary of this closing rank's messages, for its peers. */
  String farewell() {
    return counts.text(peer -> pairs == null ? 0 : pairs.count(peer));
  }

  /** Fails messages that cannot complete according to NCCL. */
  void look() {
    if (pairs != null) {
      pairs.look();
    }
    List<NcclMessage> pending = launcher.pendingMessages();
    RuntimeException failure = pending.isEmpty() ? null : launcher.failure();
    if (failure != null) {
      pending.forEach(message -> message.op().fail(failure, -1));
    }
  }

  /** Fails messages that cannot complete according to the store. */
  void lookInStore() {
    if (mayMeetPytorch && pairs == null) {
      List<NcclMessage> pending = launcher.pendingMessages();
      pending.stream().mapToInt(NcclMessage::peer).distinct().forEach(peer -> look(pending, peer));
    }
  }

  private void look(List<NcclMessage> pending, int peer) {
    if (store.check(List.of(PairMessages.key(rank, peer)))) {
      pending.stream()
          .filter(message -> message.peer() == peer)
          .forEach(message -> message.op().fail(new BackendException(otherManner(peer)), -1));
    }
  }

  private static String otherManner(int peer) {
    return ("rank %s of PyTorch was given no device_id and so uses a communicator of the two ranks"
            + " for its messages; %s")
        .formatted(peer, REMEDY);
  }

  /** Returns what may keep messages past their deadline from completing, or an empty string. */
  String likelyCause() {
    if (!mayMeetPytorch) {
      return "";
    }
    return pairs != null
        ? PairMessages.LIKELY_CAUSE
        : "if the other rank is a rank of PyTorch that was given no device_id, " + REMEDY;
  }

  /** Ends running messages without a result; never blocks. */
  void abort(Throwable cause) {
    if (pairs != null) {
      pairs.abort(cause);
    }
  }

  /** Begins to free what only messages use; nothing may be running. */
  void beginClose() {
    if (pairs != null) {
      pairs.beginClose();
    }
  }

  /** Frees everything. */
  void close(long deadlineNanos) {
    if (pairs != null) {
      pairs.close(deadlineNanos);
    }
  }
}
