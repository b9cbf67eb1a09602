package dev.tutti.cuda.driver;

/** Records work and does it again. */
public interface GraphCalls {
  /** Begins to record what this thread puts into a stream. */
  void beginCapture(long stream);

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
