package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.runtime.group.StuckStore;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which ranks are notified of failures when connections to the store are lost. */
@Timeout(300)
class JobMonitorTest {
  private static final AnswerTimes TIMES = new AnswerTimes(Duration.ofSeconds(1));

  private final HashStore shared = new HashStore();
  private final AtomicInteger losses = new AtomicInteger();

  /** Returns a view of a store whose calls fail as if their connection had been lost. */
  private Store cutOff(Store store) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (List.of("get", "check").contains(method.getName())
                  && losses.getAndDecrement() > 0) {
                throw new StoreConnectionException("reset by a firewall");
              }
              Object result;
              try {
                result = method.invoke(store, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              return method.getName().equals("duplicate") ? cutOff((Store) result) : result;
            });
  }

  private static void join(
      JobMonitor monitor,
      List<Integer> globalRanks,
      int rank,
      CompletableFuture<FailureEvent> heard) {
    GroupIdentity identity =
        new GroupIdentity("0", rank, globalRanks, Settings.ofEnvironment(Map.of()), Time.SYSTEM);
    MonitoredGroup group =
        new MonitoredGroup() {
          @Override
          public void failing(FailureEvent event) {
            heard.complete(event);
          }

          @Override
          public RankProgress standing() {
            return RankProgress.ofSetUp("0");
          }

          @Override
          public RankProgress answer(FailureEvent event) {
            return standing();
          }

          @Override
          public void settle(Evidence evidence, AgreedFailure verdict) {}
        };
    monitor.join(identity, group, true);
  }

  /** The first number of losses takes less than the time after which the store counts as lost. */
  @ParameterizedTest
  @ValueSource(ints = {3, 12})
  void failuresAreHeardOfAfterAConnectionWasLost(int count) throws Exception {
    losses.set(count);
    try (LocalWorld.Quiet _ = LocalWorld.quiet(JobMonitor.class);
        JobMonitor monitor = new JobMonitor(cutOff(shared), 0, -1, TIMES, Time.SYSTEM)) {
      CompletableFuture<FailureEvent> heard = new CompletableFuture<>();
      join(monitor, List.of(0, 1), 0, heard);
      monitor.start(() -> new byte[0]);
      LocalWorld.until("the losses", () -> losses.get() < 0);
      FailureEvent event =
          new FailureEvent(
              "0", FailureEvent.Kind.ABORTED, 1, 1, OpType.UNKNOWN, 0, Duration.ZERO, "enough");
      shared.set("event/1", event.encode());
      assertThat(heard.get(60, TimeUnit.SECONDS).message()).isEqualTo("enough");
    }
  }

  @Test
  void aRankThatCannotReadTheLogFailsItsGroups() throws Exception {
    try (LocalWorld.Quiet _ = LocalWorld.quiet(JobMonitor.class);
        JobMonitor monitor = new JobMonitor(cutOff(shared), 3, -1, TIMES, Time.SYSTEM)) {
      CompletableFuture<FailureEvent> heard = new CompletableFuture<>();
      join(monitor, List.of(2, 3), 1, heard);
      monitor.start(() -> new byte[0]);
      shared.set("event/1", new byte[] {1, 2, 3});
      FailureEvent event = heard.get(60, TimeUnit.SECONDS);
      assertThat(event.kind()).isEqualTo(FailureEvent.Kind.FAILED);
      assertThat(event.failedRank()).isEqualTo(1);
      assertThat(event.message()).contains("it can no longer read the failure log");
    }
  }

  /** Returns a view of a store that answers what waits for a key, and then nothing. */
  private static Store stuckAfterAWait(Store store, StuckStore stuck) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              Object result = method.invoke(store, arguments);
              stuck.stuck |= List.of("get", "await").contains(method.getName());
              return method.getName().equals("duplicate")
                  ? stuckAfterAWait((Store) result, stuck)
                  : result;
            });
  }

  @Test
  void anEntryThatTheStoreTookBeforeItStoodStillIsRead() throws Exception {
    StuckStore stuck = new StuckStore();
    Store store = stuckAfterAWait(stuck.around(shared), stuck);
    try (JobMonitor monitor = new JobMonitor(store, 0, -1, TIMES, Time.SYSTEM)) {
      CompletableFuture<FailureEvent> heard = new CompletableFuture<>();
      join(monitor, List.of(0, 1), 0, heard);
      monitor.start(() -> new byte[0]);
      FailureEvent event =
          new FailureEvent(
              "0", FailureEvent.Kind.ABORTED, 1, 1, OpType.UNKNOWN, 0, Duration.ZERO, "enough");
      shared.set("event/1", event.encode());
      assertThat(heard.get().message()).isEqualTo("enough");
      stuck.released.countDown();
    }
  }

  @Test
  void aReportThatTheStoreTakesLateIsNotLost() {
    StuckStore stuck = new StuckStore();
    try (JobMonitor monitor = new JobMonitor(stuck.around(shared), 1, -1, TIMES, Time.SYSTEM)) {
      join(monitor, List.of(0, 1), 1, new CompletableFuture<>());
      stuck.stuck = true;
      monitor.report(
          new FailureEvent(
              "0", FailureEvent.Kind.ABORTED, 1, 1, OpType.UNKNOWN, 0, Duration.ZERO, "enough"));
      monitor.awaitReports(Duration.ofMillis(10));
      assertThat(shared.check(List.of("event/1"))).isFalse();
      stuck.released.countDown();
      monitor.awaitReports(Duration.ofMinutes(1));
      assertThat(FailureEvent.decode(shared.get("event/1")).message()).isEqualTo("enough");
    }
  }
}
