package dev.tutti.store.table;

import dev.tutti.Store;
import dev.tutti.StoreException;
import java.util.concurrent.TimeUnit;

/**
 * Counts what the clients of a store server make it hold, and bounds it by shares of the heap.
 *
 * <p>Not thread-safe: the server's thread owns it.
 */
public final class ServerMemory {
  /*
   * One client may hold an eighth of the heap, or one value of the largest size and its key if that is
   * more; all together a quarter; connections that send nothing take an eighth; keys and values three
   * eighths. What is left is for the rest of the process.
   *
   * Where all together hold too much, one goes: who held most for longest, up to a second. So neither who
   * sends a large value at this moment goes, nor who waits for many keys.
   */
  private static final long LARGEST = Store.MAX_VALUE_BYTES + (1L << 20);
  private static final int CONNECTION_BYTES = 2048;

  /** What TLS keeps of a connection: nine records, and its engine. */
  private static final int TLS_BYTES = 160 * 1024;

  private static final int SMALL = 64 * 1024;
  private static final long LONG_MILLIS = 1000;

  private final long heap;
  private final long one;
  private final long all;
  private final long connections;
  private long held;
  private long clients;

  /** Creates bounds for the heap of this process. */
  public ServerMemory() {
    this(false);
  }

  /**
   * Creates bounds for the heap of this process.
   *
   * @param encrypts whether connections are encrypted by TLS, and so take more
   */
  public ServerMemory(boolean encrypts) {
    this(Runtime.getRuntime().maxMemory(), CONNECTION_BYTES + (encrypts ? TLS_BYTES : 0));
  }

  /** Creates bounds for a heap of so many bytes. */
  public ServerMemory(long heap) {
    this(heap, CONNECTION_BYTES);
  }

  private ServerMemory(long heap, int connectionBytes) {
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

  /** Tells whether all clients together hold more than their share, so that one must go. */
  public boolean isCrowded() {
    return held > all;
  }

  /** Tells whether there are more clients than may be, so that one must go. */
  public boolean isFull() {
    return clients > connections;
  }

  /** Says why a client goes while there are too many. */
  public String fullMessage() {
    return "at most %d clients may be connected with a heap (-Xmx) of %d bytes, and it has said nothing so far"
        .formatted(connections, heap);
  }

  /** Creates the account of a new client. */
  public Client client() {
    return new Client();
  }

  /** The account of what one client makes the server hold. */
  public final class Client {
    private long held;
    private long since;
    private boolean closed;

    private Client() {
      clients++;
    }

    /** Returns how much, and for how long, the client has held; the one with most goes first. */
    public long weight(long now) {
      long millis = held > SMALL ? TimeUnit.NANOSECONDS.toMillis(now - since) : 0;
      return held * Math.clamp(millis, 1, LONG_MILLIS);
    }

    /** Says why this client goes while all together hold too much. */
    public String crowdedMessage() {
      return ("it makes this server hold %d bytes, and all clients %d,"
              + " of the %d that they may have, a quarter of this server's heap (-Xmx)")
          .formatted(held, ServerMemory.this.held, all);
    }

    /**
     * Counts bytes before they are allocated.
     *
     * @throws StoreException if they are more than one client may hold
     */
    public void take(long bytes) {
      if (bytes > one - held && !closed) {
        throw new StoreException(
            ("it makes this server hold %d bytes and asks for %d more;"
                    + " one client may have %d, an eighth of this server's heap (-Xmx)")
                .formatted(held, bytes, one));
      }
      hold(bytes);
    }

    /** Counts bytes that are there already, also where they are more than one client may hold. */
    public void hold(long bytes) {
      if (held <= SMALL && held + bytes > SMALL) {
        since = System.nanoTime();
      }
      add(bytes);
    }

    /** Counts bytes that are free again. */
    public void give(long bytes) {
      add(-bytes);
    }

    private void add(long bytes) {
      if (!closed) {
        held += bytes;
        ServerMemory.this.held += bytes;
      }
    }

    /** Counts nothing of this client any more. */
    public void close() {
      if (!closed) {
        add(-held);
        clients--;
        closed = true;
      }
    }
  }
}
