package dev.tutti.cuda.driver;

/** Makes events and asks for them. */
public interface EventCalls {
  /** The size in bytes of what stands for an event or allocation in another process. */
  int IPC_HANDLE_BYTES = 64;

  /** Says what an event is for. */
  enum Kind {
    /** Order only; the cheapest. */
    ORDER(2),
    /** Order and time. */
    TIMING(0),
    /** Order between processes. */
    INTERPROCESS(2 | 4);

    private final int flags;

    Kind(int flags) {
      this.flags = flags;
    }

    /** Returns the driver's flags. */
    public int flags() {
      return flags;
    }
  }

  /** Makes an event that counts as reached until it is recorded. */
  long create(Kind kind);

  /** Destroys an event; streams that wait for it go on waiting. */
  void destroy(long event);

  /** Marks where a stream is. Allocates nothing. */
  void record(long event, long stream);

  /**
   * Tells, without blocking, whether the last record was reached. Allocates nothing. Ends
   * recordings that do not allow it; see {@link DeviceContext#isReached}.
   */
  boolean isReached(long event);

  /** Returns the time between two reached events in milliseconds. */
  float elapsedMillis(long start, long end);

  /**
   * Returns what another process opens an event of {@link Kind#INTERPROCESS} by, {@value
   * #IPC_HANDLE_BYTES} bytes.
   */
  byte[] exportHandle(long event);

  /** Opens an event of another process; {@link #destroy} closes it. */
  long openHandle(byte[] handle);
}
