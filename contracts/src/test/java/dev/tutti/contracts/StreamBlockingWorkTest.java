package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.spi.DeviceEvent;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/**
 * Tests {@link Work#blockCurrentStream}; the provider of the host stream is a service of the tests.
 */
class StreamBlockingWorkTest {
  private static final String HOST = new HostStreamBlockProvider().deviceType();

  private static void world(int size, RankBody body) {
    ThreadedWorld.of(size).withTimeout(Duration.ofMinutes(3)).run(body);
  }

  @Test
  void aWorkHoldsTheStreamUntilItEnds() {
    CountDownLatch blocked = new CountDownLatch(1);
    world(
        2,
        group -> {
          Tensor tensor = Tensor.of(1f, 2f);
          if (group.rank() == 1) {
            Waiting.open(blocked);
            group.allReduce(tensor);
            return;
          }
          try (HostStream stream = new HostStream()) {
            stream.makeCurrent();
            Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
            work.blockCurrentStream(HOST);
            AtomicBoolean reduced = new AtomicBoolean();
            stream.enqueue(() -> reduced.set(tensor.getDouble(1) == 4));
            DeviceEvent after = stream.record();
            assertThat(after.awaitReached(System.nanoTime() + Duration.ofMillis(50).toNanos()))
                .isFalse();
            blocked.countDown();
            assertThat(after.awaitReached(System.nanoTime() + Waiting.LONG.toNanos())).isTrue();
            assertThat(reduced).as("the stream sees the result").isTrue();
          }
        });
  }

  @Test
  void aWorkThatFailsReleasesTheStream() {
    world(
        2,
        group -> {
          if (group.rank() == 1) {
            Waiting.until("the failure", () -> group.failure().isPresent());
            return;
          }
          try (HostStream stream = new HostStream()) {
            stream.makeCurrent();
            Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
            work.blockCurrentStream(HOST);
            DeviceEvent after = stream.record();
            group.abort("no longer needed");
            assertThat(after.awaitReached(System.nanoTime() + Waiting.LONG.toNanos())).isTrue();
            assertThatThrownBy(work::await).isInstanceOf(CollectiveException.class);
          }
        });
  }

  @Test
  void theKindOfDeviceCanBeNamed() {
    world(
        2,
        group -> {
          if (group.rank() == 1) {
            group.store().get("blocked");
            group.allReduce(Tensor.of(1f));
            return;
          }
          try (HostStream stream = new HostStream()) {
            stream.makeCurrent();
            Tensor tensor = Tensor.of(2f);
            Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
            assertThatThrownBy(() -> work.blockCurrentStream("none"))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageStartingWith("no stream block for device type 'none'; found for [");
            work.blockCurrentStream(HOST);
            AtomicBoolean reduced = new AtomicBoolean();
            stream.enqueue(() -> reduced.set(tensor.getDouble(0) == 3));
            DeviceEvent after = stream.record();
            assertThat(after.awaitReached(System.nanoTime() + Duration.ofMillis(50).toNanos()))
                .isFalse();
            group.store().set("blocked", "");
            assertThat(after.awaitReached(System.nanoTime() + Waiting.LONG.toNanos())).isTrue();
            assertThat(reduced).as("the stream sees the result").isTrue();
          }
        });
  }

  @Test
  void aFinishedWorkHoldsNothing() {
    world(
        1,
        group -> {
          try (HostStream stream = new HostStream()) {
            stream.makeCurrent();
            Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT);
            work.blockCurrentStream(HOST);
            DeviceEvent after = stream.record();
            assertThat(after.awaitReached(System.nanoTime() + Waiting.LONG.toNanos())).isTrue();
          }
        });
  }
}
