package dev.tutti.cuda.driver;

/** Records work and does it again. */
public interface GraphCalls {
  /** Lets no thread call what may disturb a recording; how threads begin. */
  int GLOBAL = 0;

  /** Lets only the thread that records call nothing of that kind. */
  int THREAD_LOCAL = 1;

  /** Lets all threads call it. */
  int RELAXED = 2;

  /**
   * Begins to record what is put into a stream.
   *
   * @param mode {@link #GLOBAL}, {@link #THREAD_LOCAL} or {@link #RELAXED}
   */
  void beginCapture(long stream, int mode);

  /** Begins to record what is put into a stream, without a limit to what other threads call. */
  default void beginCapture(long stream) {
    beginCapture(stream, THREAD_LOCAL);
  }

  /**
   * Sets what the calling thread may call while streams are recorded. Allocates nothing.
   *
   * @param mode {@link #GLOBAL}, {@link #THREAD_LOCAL} or {@link #RELAXED}
   * @return what it was before
   */
  int exchangeMode(int mode);

  /** Ends a recording and returns the graph. */
  long endCapture(long stream);

  /** Prepares a graph and returns the executable one. */
  long instantiate(long graph);

  /** Puts a graph into a stream. Allocates nothing. */
  void launch(long executable, long stream);

  /** Destroys a graph. */
  void destroy(long graph);

  /** Destroys an executable graph. */
  void destroyExecutable(long executable);
}
