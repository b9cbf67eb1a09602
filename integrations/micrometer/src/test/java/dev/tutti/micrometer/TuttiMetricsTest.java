package dev.tutti.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.testing.World;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Tests what a registry records about the operations of a group. */
@World(timeoutSeconds = 240)
class TuttiMetricsTest {
  private final PrometheusMeterRegistry registry =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final CountDownLatch bound = new CountDownLatch(2);

  private static void until(BooleanSupplier condition) {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).isLessThan(deadline);
      LockSupport.parkNanos(1_000_000);
    }
  }

  @World(sizes = 2, backends = "gloo")
  void operationsAreCountedByTypePathAndState(ProcessGroup group) {
    PrometheusMeterRegistry own = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    group.allReduce(Tensor.of(1f));
    try (TuttiMetrics metrics = new TuttiMetrics(group)) {
      metrics.bindTo(own);
      group.allReduce(Tensor.of(1f, 2f, 3f));
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT.withAsync());
      work.await();
      group.barrier();
      Tags reduced = Tags.of("type", "allReduce", "state", "completed", "group", "0");
      until(
          () ->
              own.find("tutti.operations").tags(reduced).timers().stream()
                      .mapToLong(Timer::count)
                      .sum()
                  == 2);
      // The bytes are counted after the operation.
      until(
          () ->
              own.find("tutti.operation.bytes").tags(reduced).counters().stream()
                      .mapToDouble(counter -> counter.count())
                      .sum()
                  == 16);
      Timer first = own.get("tutti.operations").tags(reduced).timers().iterator().next();
      assertThat(first.totalTime(TimeUnit.NANOSECONDS)).isPositive();
      assertThat(first.getId().getTag("rank")).isEqualTo("" + group.rank());
      assertThat(group.diagnostics().usageByPath()).containsKey(first.getId().getTag("path"));
      assertThat(own.get("tutti.operations").tags("type", "barrier").timer().count()).isOne();
      assertThat(own.get("tutti.failures").counter().count()).isZero();
      until(
          () ->
              own.get("tutti.operations.waiting")
                      .tags("type", "allReduce")
                      .longTaskTimer()
                      .activeTasks()
                  == 0);
      List<String> lines = own.scrape().lines().toList();
      assertThat(lines)
          .contains("# TYPE tutti_operations_seconds summary")
          .anyMatch(
              line ->
                  line.startsWith("tutti_operations_seconds_count{group=\"0\"")
                      && line.contains("type=\"barrier\"")
                      && line.endsWith("} 1"));
    }
    assertThat(own.getMeters()).isEmpty();
  }

  @World(sizes = 2, backends = "gloo")
  void whatWaitsIsSeenWhileItWaits(ProcessGroup group) {
    PrometheusMeterRegistry own = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    try (TuttiMetrics metrics = new TuttiMetrics(group, Tags.of("job", "j1"))) {
      metrics.bindTo(own);
      if (group.rank() == 0) {
        Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT.withAsync());
        var waiting = own.get("tutti.operations.waiting").tags("type", "allReduce", "job", "j1");
        assertThat(waiting.longTaskTimer().activeTasks()).isOne();
        until(() -> waiting.longTaskTimer().duration(TimeUnit.MILLISECONDS) > 20);
        group.store().set("seen", "1");
        work.await();
        until(() -> waiting.longTaskTimer().activeTasks() == 0);
        assertThat(own.get("tutti.operations").timer().max(TimeUnit.MILLISECONDS))
            .isGreaterThan(20);
      } else {
        byte[] _ = group.store().get("seen");
        group.allReduce(Tensor.of(1f));
      }
      group.barrier();
    }
  }

  @World(sizes = 2, backends = "gloo")
  void failuresAreCounted(ProcessGroup group) throws Exception {
    PrometheusMeterRegistry own = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    group.barrier();
    new TuttiMetrics(group).bindTo(own);
    // The abort would also end the barrier of a rank that has not left it yet.
    bound.countDown();
    assertThat(bound.await(120, TimeUnit.SECONDS)).isTrue();
    if (group.rank() == 1) {
      group.abort("no more");
    }
    assertThatThrownBy(
            () -> {
              while (true) {
                group.allReduce(Tensor.of(1f));
              }
            })
        .isInstanceOf(TuttiException.class);
    until(() -> own.get("tutti.failures").counter().count() == 1);
  }

  @World(sizes = 1)
  void meterOfASubgroupHasItsName(ProcessGroup group) {
    try (ProcessGroup half = group.split(0, 0).orElseThrow();
        TuttiMetrics metrics = new TuttiMetrics(half)) {
      metrics.bindTo(registry);
      half.barrier(CallOptions.DEFAULT.withTimeout(Duration.ofSeconds(20)));
      assertThat(registry.get("tutti.operations").timer().getId().getTag("group"))
          .isEqualTo(half.name());
    }
  }

  @World(sizes = 1, backends = "gloo")
  void eachOperationIsCountedOnceHoweverOftenTheGroupIsBound(ProcessGroup group) {
    TuttiMetrics one = new TuttiMetrics(group);
    TuttiMetrics other = new TuttiMetrics(group);
    one.bindTo(registry);
    one.bindTo(registry);
    other.bindTo(registry);
    group.barrier();
    until(() -> barriers() == 1);
    one.close();
    group.barrier();
    until(() -> barriers() == 2);
    assertThat(registry.get("tutti.failures").counter().count()).isZero();
    assertThat(registry.get("tutti.operations.waiting").longTaskTimer().activeTasks()).isZero();
    other.close();
    other.close();
    assertThat(registry.getMeters()).isEmpty();
  }

  private double barriers() {
    return registry.get("tutti.operations").tags("type", "barrier").timer().count();
  }

  /** A second group of a process has the first one's name, as in a job that starts again. */
  @World(sizes = 1, backends = "gloo")
  void metersOfAnotherGroupOfTheSameNameStay(ProcessGroup group) {
    ThreadedWorld.of(1)
        .run(
            second -> {
              assertThat(second.name()).isEqualTo(group.name());
              TuttiMetrics first = new TuttiMetrics(group);
              TuttiMetrics later = new TuttiMetrics(second);
              first.bindTo(registry);
              later.bindTo(registry);
              second.barrier();
              String pathOfSecond = onlyPath();
              group.barrier();
              until(() -> registry.get("tutti.operations").timers().size() == 2);
              first.close();
              until(() -> registry.get("tutti.operations").timers().size() == 1);
              assertThat(onlyPath()).isEqualTo(pathOfSecond);
              second.barrier();
              until(() -> barriers() == 2);
              later.close();
              assertThat(registry.getMeters()).isEmpty();
            });
  }

  private String onlyPath() {
    until(() -> registry.find("tutti.operations").timers().size() == 1);
    return registry.get("tutti.operations").timer().getId().getTag("path");
  }
}
