package dev.tutti.store.table;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.spi.NanoClock;
import java.util.concurrent.TimeUnit;

/**
 * Counts the memory that clients make a store server hold, and limits it to shares of the heap.
 *
 * <p>Not thread-safe: owned by the server's thread.
 */
public final class ServerMemory {
  /*
   * One client may hold an eighth of the heap, or one value of the largest size and its key if that
   * is more; all clients together a quarter; connections that send nothing take an eighth; keys and
   * values three eighths. The rest is left for the other parts of the process.
   *
   * If all clients together hold too much, the one with the largest product of bytes held and time
   * held (at most one second) is dropped. This spares both a client that is sending a large value
   * at this moment and one that waits for many keys.
   */
  private static final long LARGEST = Store.MAX_VALUE_BYTES + (1L << 20);
  private static final int CONNECTION_BYTES = 2048;

  /** The memory that TLS keeps for a connection: nine records, and its engine. */
  private static final int TLS_BYTES = 160 * 1024;

  private static final int SMALL = 64 * 1024;
  private static final long LONG_MILLIS = 1000;

  private final NanoClock clock;
  private final long heap;
  private final long one;
  private final long all;
  private final long connections;
  private long held;
  private long clients;

  /** Creates limits for the heap of this process, for clients that do not encrypt. */
  public ServerMemory(NanoClock clock) {
    this(false, clock);
  }

  /**
   * Creates limits for the heap of this process.
   *
   * @param encrypts whether connections are encrypted by TLS, and therefore take more memory
   * @param clock returns for how long a client holds memory
   */
  public ServerMemory(boolean encrypts, NanoClock clock) {
    this(Runtime.getRuntime().maxMemory(), CONNECTION_BYTES + (encrypts ? TLS_BYTES : 0), clock);
  }

  /** Creates limits for a heap of the given size in bytes. */
  public ServerMemory(long heap, NanoClock clock) {
    this(heap, CONNECTION_BYTES, clock);
  }

  private ServerMemory(long heap, int connectionBytes, NanoClock clock) {
    this.clock = clock;
    this.heap = heap;
    this.one = Math.max(heap / 8, LARGEST);
    this.all = Math.max(heap / 4, LARGEST);
    this.connections = heap / 8 / connectionBytes;
  }

  /** Returns how many bytes of keys and values may be stored. */
  public long table() {
    return heap / 8 * 3;
  }

  /** Returns how many bytes one client may make the server hold. */
  public long one() {
    return one;
  }

  /**
   * Returns whether all clients together hold more than their share, so that one must be dropped.
   */
  public boolean isCrowded() {
    return held > all;
  }

  /** Returns whether there are more clients than allowed, so that one must be dropped. */
  public boolean isFull() {
    return clients > connections;
  }

  /** Returns the reason for dropping a client while there are too many. */
  public String fullMessage() {
    return ("at most %d clients may be connected with a heap (-Xmx) of %d bytes, and this one has"
            + " not identified itself yet")
        .formatted(connections, heap);
  }

  /** Creates the account of a new client. */
  public Client client() {
    return new Client();
  }

  /** The account of the memory that one client makes the server hold. */
  public final class Client {
    private long held;
    private long since;
    private boolean closed;

    private Client() {
      clients++;
    }

    /**
     * Returns a measure of how much, and for how long, the client has held; the client with the
     * highest is dropped first.
     */
    public long weight(long now) {
      long millis = held > SMALL ? TimeUnit.NANOSECONDS.toMillis(now - since) : 0;
      return held * Math.clamp(millis, 1, LONG_MILLIS);
    }

    /** Returns the reason for dropping this client while all together hold too much. */
    public String crowdedMessage() {
      return ("this server holds %d bytes for it and %d for all clients; the limit for all is %d, a"
              + " quarter of this server's heap (-Xmx)")
          .formatted(held, ServerMemory.this.held, all);
    }

    /**
     * Counts bytes before they are allocated.
     *
     * @throws StoreException if one client may not hold that many
     */
    public void take(long bytes) {
      if (bytes > one - held && !closed) {
        throw new StoreException(
            ("this server holds %d bytes for it and would need %d more; the limit for one client is"
                    + " %d, an eighth of this server's heap (-Xmx)")
                .formatted(held, bytes, one));
      }
      hold(bytes);
    }

    /** Counts bytes that already exist, even if they are more than one client may hold. */
    public void hold(long bytes) {
      if (held <= SMALL && held + bytes > SMALL) {
        since = clock.nanoTime();
      }
      add(bytes);
    }

    /** Counts bytes that have been freed. */
    public void give(long bytes) {
      add(-bytes);
    }

    private void add(long bytes) {
      if (!closed) {
        held += bytes;
        ServerMemory.this.held += bytes;
      }
    }

    /** Stops counting for this client. */
    public void close() {
      if (!closed) {
        add(-held);
        clients--;
        closed = true;
      }
    }
  }
}
