package dev.tutti.cuda.nccl;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cuda.collective.Messages;
import dev.tutti.spi.Operation;
import dev.tutti.spi.PeerLostException;
import java.lang.System.Logger.Level;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A watch that checks, while an operation or a message takes long, whether it can still complete:
 * whether NCCL reports a failure, or a peer closed the group before it reached that operation.
 */
final class NcclWatch implements AutoCloseable {
  /*
   * Keys: closed/RANK holds the number of the rank's last operation and its farewell about
   * messages; then "closed" says that there is such a key. PyTorch ranks write none of them.
   */
  private static final System.Logger LOG = System.getLogger(NcclWatch.class.getName());
  private static final long PERIOD_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
  private static final Duration TELL = Duration.ofSeconds(1);
  private static final String CLOSED = "tutti/closed";
  private static final String SEPARATOR = " ";

  private final LazyCommunicator communicator;
  private final NcclLauncher launcher;
  private final Store store;
  private final int rank;
  private final int size;
  private final @Nullable Messages messages;
  private final Thread thread;
  private final Thread storeThread;
  private volatile boolean closed;

  NcclWatch(
      LazyCommunicator communicator,
      NcclLauncher launcher,
      Store store,
      int rank,
      int size,
      @Nullable Messages messages) {
    this.communicator = communicator;
    this.launcher = launcher;
    this.store = store;
    this.rank = rank;
    this.size = size;
    this.messages = messages;
    this.thread = Thread.ofVirtual().name("tutti-nccl-watch-" + rank).start(this::watch);
    this.storeThread = Thread.ofVirtual().name("tutti-nccl-store-" + rank).start(this::watchStore);
  }

  private void watch() {
    long seen = 0;
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      Operation op = launcher.pending();
      if (closed) {
        return;
      }
      long number = op == null ? 0 : op.sequenceNumber();
      Messages own = messages;
      if (own != null) {
        own.look();
      }
      RuntimeException failure = op != null && number == seen ? launcher.failure() : null;
      if (op != null && failure != null) {
        op.fail(failure, -1);
      }
      seen = number;
    }
  }

  /** Checks the store, which may take long to answer; NCCL is checked meanwhile. */
  private void watchStore() {
    long seen = 0;
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      Operation op = launcher.pending();
      if (closed) {
        return;
      }
      long number = op == null ? 0 : op.sequenceNumber();
      Messages own = messages;
      if (own != null) {
        unlessStoreFails(() -> look(own));
      }
      if (op != null && number == seen) {
        unlessStoreFails(() -> look(op, number));
      }
      seen = number;
    }
  }

  private void unlessStoreFails(Runnable look) {
    try {
      look.run();
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot check which ranks closed the group: {1}", rank, e);
    }
  }

  private void look(Messages own) {
    own.lookInStore();
    if (!own.isWaiting() || !store.check(List.of(CLOSED))) {
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      String farewell = peer == rank ? null : farewell(peer);
      if (farewell != null) {
        own.leave(peer, farewell.substring(farewell.indexOf(SEPARATOR) + 1));
      }
    }
  }

  private void look(Operation op, long number) {
    if (size == 1 || !store.check(List.of(CLOSED))) {
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      String farewell = peer == rank ? null : farewell(peer);
      if (farewell != null) {
        long last = Long.parseLong(farewell.substring(0, farewell.indexOf(SEPARATOR)));
        if (number > last && !op.isDone() && op.sequenceNumber() == number) {
          op.fail(new PeerLostException(peer, "rank " + peer + " closed the group", null), peer);
        }
      }
    }
  }

  /** Returns the farewell of a peer that closed the group; null if it has not closed it. */
  private @Nullable String farewell(int peer) {
    String key = CLOSED + "/" + peer;
    return store.check(List.of(key)) ? new String(store.get(key), StandardCharsets.UTF_8) : null;
  }

  /** Notifies the peers, unless the group failed, and stops checking. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    LockSupport.unpark(storeThread);
    if (size == 1 || communicator.isAborted()) {
      return;
    }
    Thread teller = Thread.ofVirtual().name("tutti-nccl-leave-" + rank).start(this::tell);
    boolean interrupted = Thread.interrupted();
    try {
      boolean _ = teller.join(TELL);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void tell() {
    try {
      Messages own = messages;
      String farewell = own == null ? "" : own.farewell();
      store.set(CLOSED + "/" + rank, launcher.lastSequence() + SEPARATOR + farewell);
      store.set(CLOSED, "1");
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot announce that it closes the group: {1}", rank, e);
    }
  }
}
