package dev.tutti.cuda.driver;

import java.util.concurrent.CountDownLatch;

/** A point in a stream, and what comes before it. */
final class FakePoint {
  final CountDownLatch reached = new CountDownLatch(1);
  volatile Clock clock = Clock.START;

  /** Returns a point that nothing comes before. */
  static FakePoint passed() {
    FakePoint point = new FakePoint();
    point.reached.countDown();
    return point;
  }
}
