package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.CallOptions;
import dev.tutti.Capabilities.Feature;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.runtime.group.ScriptedProvider;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests stream-ordered collectives whose callers get no work. */
@Timeout(300)
@Isolated("counts what is allocated")
class StreamOperationsTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private final ScriptedProvider provider = new ScriptedProvider();
  private final PlayedDevice device = new PlayedDevice();
  private final Tensor tensor = Tensor.allocate(Arena.ofAuto(), DType.FLOAT32, 4);

  StreamOperationsTest() {
    provider.features = new Feature[] {Feature.TAGS, Feature.STREAM_ORDERED};
    provider.allReduce = (op, tensor) -> op.enqueued(device.take());
  }

  /** A device that reaches its points in order, up to a given number. */
  private static final class PlayedDevice {
    private final ArrayDeque<Point> free = new ArrayDeque<>();
    private final AtomicInteger released = new AtomicInteger();
    private final AtomicInteger looks = new AtomicInteger();
    private volatile long reached;
    private volatile @Nullable Thread awaitedBy;
    private volatile @Nullable CountDownLatch hang;
    private long made;

    synchronized Point take() {
      Point point = free.isEmpty() ? new Point(this) : free.pop();
      point.number = ++made;
      return point;
    }

    synchronized void give(Point point) {
      if (point.number > reached) {
        throw new AssertionError("a point was given back that was not reached: " + point.number);
      }
      released.incrementAndGet();
      free.push(point);
    }
  }

  private static final class Point implements DeviceEvent {
    private final PlayedDevice device;
    private volatile long number;

    Point(PlayedDevice device) {
      this.device = device;
    }

    @Override
    public boolean isReached() {
      device.looks.incrementAndGet();
      CountDownLatch hang = device.hang;
      if (hang != null) {
        await(hang);
      }
      return number <= device.reached;
    }

    private static void await(CountDownLatch latch) {
      try {
        latch.await();
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    public void orderCurrentStream() {}

    @Override
    public boolean awaitReached(long deadlineNanos) {
      device.awaitedBy = Thread.currentThread();
      return isReached();
    }

    @Override
    public void release() {
      device.give(this);
    }
  }

  @Test
  void inTheLongRunACallAllocatesNothing() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      long calls = 0;
      long least = Long.MAX_VALUE;
      long limit = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
      for (int batch = 0; batch < 20 || (least > 0 && System.nanoTime() - limit < 0); batch++) {
        long before = THREADS.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 500; i++) {
          group.allReduce(tensor, ReduceOp.SUM);
          calls++;
          device.reached = calls - 100;
        }
        least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
        long behind = calls - 100;
        LocalWorld.until(
            "the watchdog has freed what was reached", () -> device.released.get() >= behind);
      }
      assertThat(least).isZero();
      assertThat(device.free.size()).isLessThan(1000);
      device.reached = calls;
      long all = calls;
      LocalWorld.until("all points are given back", () -> device.released.get() == all);
      assertThat(group.diagnostics().flightRecord())
          .contains("COMPLETED")
          .doesNotContain("RUNNING");
    }
  }

  @Test
  void aRecordSaysAtOnceWhatTheDeviceHasCompleted(@TempDir Path folder) throws Exception {
    // A record waits for the device's answer for 2 s, which do not pass here.
    provider.time =
        new ForwardingTime(Time.SYSTEM) {
          @Override
          public long nanoTime() {
            return 0;
          }
        };
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      for (int calls = 1; calls <= 5; calls += 2) {
        group.allReduce(tensor, ReduceOp.SUM);
        device.reached = device.made;
        assertThat(group.diagnostics().flightRecord())
            .contains("COMPLETED")
            .doesNotContain("RUNNING");
        group.allReduce(tensor, ReduceOp.SUM);
        device.reached = device.made;
        List<Path> files = group.diagnostics().dumpFlightRecord(folder.resolve("rank_"));
        assertThat(Files.readString(files.get(1))).contains("COMPLETED").doesNotContain("RUNNING");
      }
    }
  }

  @Test
  void aRecordIsWrittenWhileTheDriverHangs(@TempDir Path folder) throws Exception {
    CountDownLatch hang = new CountDownLatch(1);
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      group.allReduce(tensor, ReduceOp.SUM);
      device.hang = hang;
      try {
        assertThat(group.diagnostics().flightRecord()).contains("RUNNING");
        List<Path> files = group.diagnostics().dumpFlightRecord(folder.resolve("rank_"));
        assertThat(Files.readString(files.get(1))).contains("RUNNING");
      } finally {
        device.hang = null;
        device.reached = 1;
        hang.countDown();
      }
      LocalWorld.until("the operation ends", () -> device.released.get() == 1);
    }
  }

  /** The watchdog would pull what the next calls reuse into the caches of another core. */
  @Test
  void whoIssuesCallsFreesWhatTheDeviceReached() throws Exception {
    CountDownLatch held = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    Watchdog.Watched holder =
        now -> {
          held.countDown();
          Point.await(release);
          return now + TimeUnit.SECONDS.toNanos(1);
        };
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      device.reached = Long.MAX_VALUE;
      // Nobody can free anything while the watchdog is at it, so it is held.
      Watchdog.of(Time.SYSTEM).watch(holder);
      try {
        Watchdog.of(Time.SYSTEM).expect(System.nanoTime());
        assertThat(held.await(60, TimeUnit.SECONDS)).isTrue();
        for (int calls = 1; calls <= 10_000; calls++) {
          group.allReduce(tensor, ReduceOp.SUM);
          assertThat(calls - device.released.get()).isLessThanOrEqualTo(192);
        }
        assertThat(device.free.size()).isLessThan(192);
      } finally {
        Watchdog.of(Time.SYSTEM).unwatch(holder);
        release.countDown();
      }
    }
  }

  @Test
  void aReduceAllocatesNothingEither() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      device.reached = Long.MAX_VALUE;
      assertThat(allocatedInTheLongRun(() -> group.reduce(tensor, ReduceOp.SUM, 0))).isZero();
    }
  }

  @Test
  void aBarrierAllocatesNothingEither() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      device.reached = Long.MAX_VALUE;
      assertThat(allocatedInTheLongRun(group::barrier)).isZero();
    }
  }

  private static long allocatedInTheLongRun(Runnable call) {
    long least = Long.MAX_VALUE;
    long limit = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    while (least > 0 && System.nanoTime() - limit < 0) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 500; i++) {
        call.run();
      }
      least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
    }
    return least;
  }

  @Test
  void theHostWaitsForABarrier() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      Thread waiter = Thread.ofPlatform().start(group::barrier);
      LocalWorld.until("the barrier is looked at", () -> device.looks.get() > 2);
      assertThat(waiter.isAlive()).isTrue();
      device.reached = 1;
      assertThat(waiter.join(Duration.ofSeconds(60))).isTrue();
    }
  }

  @Test
  void aBarrierThatTheDeviceNeverReachesTimesOut() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms")) {
      group.setTimeout(Duration.ofMillis(100));
      assertThatThrownBy(group::barrier).isInstanceOf(CollectiveTimeoutException.class);
      assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
          .isInstanceOf(TuttiException.class);
    }
  }

  /** The kernel of a message is launched once the peer is there, while its caller waits. */
  @Test
  void whoWaitsForAMessageLooksAtTheDeviceItself() throws Exception {
    provider.send =
        (op, tensor, peer) -> {
          Point point = device.take();
          Thread caller = Thread.currentThread();
          Thread.ofPlatform()
              .start(
                  () -> {
                    LocalWorld.until(
                        "the caller waits", () -> caller.getState() == Thread.State.TIMED_WAITING);
                    op.enqueued(point);
                    LocalWorld.until("the caller looks", () -> caller.equals(device.awaitedBy));
                    device.reached = Long.MAX_VALUE;
                  });
        };
    try (ProcessGroup group = provider.join(2, "TUTTI_CLOSE_TIMEOUT", "100ms")) {
      group.send(tensor, 1);
      assertThat(device.awaitedBy).isEqualTo(Thread.currentThread());
    }
  }

  /** A refused call has no event, so its end says nothing about earlier calls. */
  @Test
  void aRefusedCallDoesNotEndThoseBefore() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      group.allReduce(tensor, ReduceOp.SUM);
      provider.allReduce =
          (op, tensor) -> {
            throw new UnsupportedOperationException("not now");
          };
      assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("not now");
      assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM, CallOptions.DEFAULT))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("not now");
      assertThat(group.sequenceNumber()).isEqualTo(1);
      int looks = device.looks.get();
      LocalWorld.until("the first one is looked at again", () -> device.looks.get() > looks + 1);
      assertThat(group.diagnostics().flightRecord()).contains("RUNNING");
      assertThat(device.released).hasValue(0);
      device.reached = 1;
      LocalWorld.until("the first one ends", () -> device.released.get() == 1);
      assertThat(group.diagnostics().flightRecord()).doesNotContain("RUNNING");
    }
  }

  @Test
  void theTimeOfACallCountsFromTheCallNotFromItsTurn() throws Exception {
    Duration limit = Duration.ofSeconds(100);
    AtomicLong deadline = new AtomicLong();
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "5s")) {
      CountDownLatch held = new CountDownLatch(1);
      CountDownLatch release = new CountDownLatch(1);
      provider.allReduce =
          (op, tensor) -> {
            held.countDown();
            assertThat(release.await(60, TimeUnit.SECONDS)).isTrue();
            op.enqueued(device.take());
          };
      device.reached = Long.MAX_VALUE;
      CompletableFuture<Void> first = LocalWorld.async(() -> group.allReduce(tensor, ReduceOp.SUM));
      held.await();
      provider.allReduce =
          (op, tensor) -> {
            deadline.set(op.deadlineNanos());
            op.enqueued(device.take());
          };
      Thread second =
          Thread.ofPlatform()
              .start(() -> group.allReduce(tensor, ReduceOp.SUM, CallOptions.timeout(limit)));
      LocalWorld.until("the second waits", () -> second.getState() == Thread.State.TIMED_WAITING);
      long waits = System.nanoTime();
      release.countDown();
      first.get(60, TimeUnit.SECONDS);
      assertThat(second.join(Duration.ofSeconds(60))).isTrue();
      assertThat(deadline.get() - waits).isPositive().isLessThan(limit.toNanos());
    }
  }

  @Test
  void whatTheDeviceNeverReachesTimesOut() throws Exception {
    try (ProcessGroup group = provider.alone("TUTTI_CLOSE_TIMEOUT", "100ms")) {
      group.setTimeout(Duration.ofMillis(100));
      group.allReduce(tensor, ReduceOp.SUM);
      LocalWorld.until("the group fails", () -> group.failure().isPresent());
      assertThat(group.failure().orElseThrow()).isInstanceOf(CollectiveTimeoutException.class);
      assertThatThrownBy(() -> group.allReduce(tensor, ReduceOp.SUM))
          .isInstanceOf(TuttiException.class);
    }
  }
}
