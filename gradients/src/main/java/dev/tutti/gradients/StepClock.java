package dev.tutti.gradients;

/** Times the steps of a reducer. */
final class StepClock {
  /*
   * The first and the last mark of a step are written by whichever threads make them, without
   * exclusion: a step's end is ordered behind them, and one nanosecond more or less is no matter.
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

  /** Ends the step that a thread awaited since a time. */
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
