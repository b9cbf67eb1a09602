package dev.tutti.cuda.driver;

/** The driver calls that capture work into graphs and replay it. */
public interface GraphCalls {
  /** Forbids all threads to make calls that may disturb a capture; the initial mode of a thread. */
  int GLOBAL = 0;

  /** Forbids only the capturing thread to make such calls. */
  int THREAD_LOCAL = 1;

  /** Allows all threads to make such calls. */
  int RELAXED = 2;

  /**
   * Begins to capture the work that is put into a stream.
   *
   * @param mode {@link #GLOBAL}, {@link #THREAD_LOCAL} or {@link #RELAXED}
   */
  void beginCapture(long stream, int mode);

  /**
   * Begins to capture the work that is put into a stream, without restricting the calls of other
   * threads.
   */
  default void beginCapture(long stream) {
    beginCapture(stream, THREAD_LOCAL);
  }

  /**
   * Sets what the calling thread may call during graph captures. Allocates nothing.
   *
   * @param mode {@link #GLOBAL}, {@link #THREAD_LOCAL} or {@link #RELAXED}
   * @return the mode before
   */
  int exchangeMode(int mode);

  /** Ends a capture and returns the graph. */
  long endCapture(long stream);

  /** Instantiates a graph and returns the executable graph. */
  long instantiate(long graph);

  /** Launches an executable graph into a stream. Allocates nothing. */
  void launch(long executable, long stream);

  /** Destroys a graph. */
  void destroy(long graph);

  /** Destroys an executable graph. */
  void destroyExecutable(long executable);
}
