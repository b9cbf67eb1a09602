package dev.tutti.cuda.driver;

/** The driver calls that create and query events. */
public interface EventCalls {
  /** The size in bytes of the handle by which another process opens an event or allocation. */
  int IPC_HANDLE_BYTES = 64;

  /** The purpose of an event. */
  enum Purpose {
    /** Ordering only, which is the cheapest. */
    ORDER(2),
    /** Ordering and timing. */
    TIMING(0),
    /** Ordering between processes. */
    INTERPROCESS(2 | 4);

    private final int flags;

    Purpose(int flags) {
      this.flags = flags;
    }

    /** Returns the driver's flags. */
    public int flags() {
      return flags;
    }
  }

  /** Creates an event, which counts as reached until it is recorded. */
  long create(Purpose purpose);

  /** Destroys an event; streams that wait for it keep waiting. */
  void destroy(long event);

  /** Records an event at the current end of a stream's work. Allocates nothing. */
  void record(long event, long stream);

  /**
   * Returns, without blocking, whether the last recorded point was reached. Allocates nothing.
   * Invalidates captures that do not allow the query; see {@link DeviceContext#isReached}.
   */
  boolean isReached(long event);

  /** Returns the time between two reached events, in milliseconds. */
  float elapsedMillis(long start, long end);

  /**
   * Returns the handle, of {@value #IPC_HANDLE_BYTES} bytes, with which another process opens an
   * event of {@link Purpose#INTERPROCESS}.
   */
  byte[] exportHandle(long event);

  /** Opens an event of another process; {@link #destroy} closes it. */
  long openHandle(byte[] handle);
}
