package dev.tutti.gradients;

/** The clock that times the steps of a reducer. */
final class StepClock {
  /*
   * The times of the first and the last mark of a step are written without mutual exclusion by the
   * threads that make the marks. The end of the step is ordered after these writes, and an error of
   * a nanosecond does not matter.
   */
  private volatile long firstReady;
  private volatile long lastReady;
  private long communication;
  private long bytes;

  private StepStatistics.Sample last = new StepStatistics.Sample();
  private final StepStatistics.Sample total = new StepStatistics.Sample();
  private StepStatistics.Sample spare = new StepStatistics.Sample();

  void begin() {
    firstReady = System.nanoTime();
  }

  void ready() {
    lastReady = System.nanoTime();
  }

  /** Adds a reduction; called by the thread that made it. */
  void add(long nanos, long byteSize) {
    communication += nanos;
    bytes += byteSize;
  }

  /** Ends the step that a thread has awaited since the given time. */
  synchronized void end(long awaitedSince, int buckets) {
    long now = System.nanoTime();
    StepStatistics.Sample next = spare;
    next.backward = Math.max(0, lastReady - firstReady);
    next.communication = communication;
    next.exposed = now - awaitedSince;
    next.step = now - firstReady;
    next.bytes = bytes;
    next.buckets = buckets;
    next.steps = total.steps + 1;
    total.add(next);
    spare = last;
    last = next;
    communication = 0;
    bytes = 0;
  }

  synchronized StepStatistics last() {
    return new StepStatistics(last, 1);
  }

  synchronized StepStatistics mean() {
    return new StepStatistics(total, Math.max(1, total.steps));
  }
}
