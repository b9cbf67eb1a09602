package dev.tutti.cuda.nccl;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.cuda.collective.CollectiveLauncher;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Printable;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.ObjIntConsumer;
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
  private final @Nullable OrderedMessages messages;
  private final Thread thread;
  private final Thread storeThread;
  private volatile boolean closed;

  NcclWatch(
      BackendContext context,
      LazyCommunicator communicator,
      NcclLauncher launcher,
      @Nullable OrderedMessages messages) {
    this.communicator = communicator;
    this.launcher = launcher;
    this.store = context.store();
    this.rank = context.rank();
    this.size = context.size();
    this.messages = messages;
    this.thread =
        Thread.ofVirtual().name("tutti-nccl-watch-" + rank).start(() -> repeat(this::look));
    this.storeThread = Thread.ofVirtual().name("tutti-nccl-store-" + rank).start(this::useStore);
  }

  /** What is checked once in each period. */
  private interface Check {
    /**
     * Checks.
     *
     * @param late the operation that has been pending for a period or longer, or null
     * @param number its number
     */
    void run(@Nullable Operation late, long number);
  }

  private void repeat(Check check) {
    long seen = 0;
    while (!closed) {
      LockSupport.parkNanos(PERIOD_NANOS);
      Operation op = launcher.pending();
      if (closed) {
        return;
      }
      long number = op == null ? 0 : op.sequenceNumber();
      check.run(number == seen ? op : null, number);
      seen = number;
    }
  }

  /** Checks the store until the watch is closed, and then announces that. */
  private void useStore() {
    try {
      repeat(this::lookInStore);
    } finally {
      if (hasReaders()) {
        tell();
      }
    }
  }

  private boolean hasReaders() {
    return size > 1 && !communicator.isAborted();
  }

  private void look(@Nullable Operation late, long number) {
    if (messages != null) {
      messages.look();
    }
    RuntimeException failure = late == null ? null : launcher.failure();
    if (late != null && failure != null) {
      late.fail(failure, -1);
    }
  }

  /** Checks the store, which may take long to answer; NCCL is checked meanwhile. */
  private void lookInStore(@Nullable Operation late, long number) {
    if (messages != null) {
      unlessStoreFails(() -> endMessages(messages));
    }
    if (late != null && size > 1) {
      unlessStoreFails(() -> endLate(late, number));
    }
  }

  private void unlessStoreFails(Runnable look) {
    try {
      look.run();
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot check which ranks closed the group: {1}", rank, e);
    }
  }

  private void endMessages(OrderedMessages own) {
    own.lookInStore();
    if (own.isWaiting()) {
      forEachFarewell(
          (farewell, peer) -> own.leave(peer, farewell.substring(farewell.indexOf(SEPARATOR) + 1)));
    }
  }

  private void endLate(Operation op, long number) {
    forEachFarewell(
        (farewell, peer) -> {
          long last = Long.parseLong(farewell.substring(0, farewell.indexOf(SEPARATOR)));
          if (number > last && !op.isDone() && op.sequenceNumber() == number) {
            op.fail(CollectiveLauncher.closed(peer), peer);
          }
        });
  }

  /** Passes on the farewells of the peers that closed the group. */
  private void forEachFarewell(ObjIntConsumer<String> reader) {
    if (!store.check(List.of(CLOSED))) {
      return;
    }
    for (int peer = 0; peer < size; peer++) {
      String key = CLOSED + "/" + peer;
      if (peer != rank && store.check(List.of(key))) {
        reader.accept(Printable.decode(store.get(key)), peer);
      }
    }
  }

  /** Notifies the peers, unless the group failed, and stops checking. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    LockSupport.unpark(storeThread);
    if (!hasReaders()) {
      return;
    }
    boolean interrupted = Thread.interrupted();
    try {
      boolean _ = storeThread.join(TELL);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void tell() {
    try {
      String farewell = messages == null ? "" : messages.farewell();
      store.set(CLOSED + "/" + rank, launcher.lastSequence() + SEPARATOR + farewell);
      store.set(CLOSED, "1");
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot announce that it closes the group: {1}", rank, e);
    }
  }
}
