package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.OpType;
import dev.tutti.Store;
import dev.tutti.StoreConnectionException;
import dev.tutti.runtime.group.LocalWorld;
import dev.tutti.runtime.group.StuckStore;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which ranks learn of failures when connections to the store are lost. */
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
              if (List.of("await", "check").contains(method.getName())
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

  /** The first number of losses takes less than the time after which the store counts as lost. */
  @ParameterizedTest
  @ValueSource(ints = {3, 12})
  void failuresAreHeardOfAfterAConnectionWasLost(int count) throws Exception {
    losses.set(count);
    try (LocalWorld.Quiet _ = LocalWorld.quiet(JobMonitor.class);
        JobMonitor monitor = new JobMonitor(cutOff(shared), 0, -1, TIMES, Time.SYSTEM)) {
      CompletableFuture<FailureEvent> heard = new CompletableFuture<>();
      monitor.join("0", List.of(0, 1), heard::complete);
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
      monitor.join("0", List.of(2, 3), heard::complete);
      monitor.start(() -> new byte[0]);
      shared.set("event/1", new byte[] {1, 2, 3});
      FailureEvent event = heard.get(60, TimeUnit.SECONDS);
      assertThat(event.kind()).isEqualTo(FailureEvent.Kind.FAILED);
      assertThat(event.failedRank()).isEqualTo(1);
      assertThat(event.message()).contains("it can no longer read the failure log");
    }
  }

  /**
   * Reports a failure of rank 1 of three to a hanging store, and returns what the report becomes.
   */
  private AgreedFailure reportInSilence(int server, FailureEvent.Kind kind, int failedRank)
      throws Exception {
    StuckStore stuck = new StuckStore();
    try (JobMonitor monitor = new JobMonitor(stuck.around(shared), 1, server, TIMES, Time.SYSTEM)) {
      CompletableFuture<FailureEvent> heard = new CompletableFuture<>();
      monitor.join("0", List.of(0, 1, 2), heard::complete);
      stuck.stuck = true;
      FailureEvent own =
          new FailureEvent(
              "0", kind, 1, failedRank, OpType.ALL_REDUCE, 3, Duration.ZERO, "no data");
      assertThat(monitor.report(own)).isEqualTo(own);
      assertThat(monitor.isUnheard()).isTrue();
      assertThat(heard.get(60, TimeUnit.SECONDS)).isEqualTo(own);
      return Blame.judge(Evidence.of(own, 3, 1, monitor.serverOf("0"), false).withoutStore());
    } finally {
      stuck.released.countDown();
    }
  }

  @Test
  void aReportThatTheStoreTakesLateIsNotLost() {
    StuckStore stuck = new StuckStore();
    try (JobMonitor monitor = new JobMonitor(stuck.around(shared), 1, -1, TIMES, Time.SYSTEM)) {
      stuck.stuck = true;
      FailureEvent own =
          new FailureEvent(
              "0", FailureEvent.Kind.ABORTED, 1, 1, OpType.UNKNOWN, 0, Duration.ZERO, "enough");
      assertThat(monitor.report(own)).isEqualTo(own);
      assertThat(monitor.isUnheard()).isTrue();
      monitor.awaitReports(Duration.ofMillis(10));
      assertThat(monitor.isUnheard()).isTrue();
      stuck.released.countDown();
      monitor.awaitReports(Duration.ofMinutes(1));
      assertThat(monitor.isUnheard()).isFalse();
      assertThat(FailureEvent.decode(shared.get("event/1")).message()).isEqualTo("enough");
    }
  }

  /** With the default, the report would count as lost after a second. */
  @Test
  void aReportMayTakeAsLongAsTheSettingSays() throws Exception {
    StuckStore stuck = new StuckStore();
    AnswerTimes times = new AnswerTimes(Duration.ofMinutes(4));
    try (JobMonitor monitor = new JobMonitor(stuck.around(shared), 1, 0, times, Time.SYSTEM)) {
      stuck.stuck = true;
      FailureEvent own =
          new FailureEvent(
              "0",
              FailureEvent.Kind.TIMEOUT,
              1,
              -1,
              OpType.ALL_REDUCE,
              3,
              Duration.ZERO,
              "no data");
      CompletableFuture<FailureEvent> report =
          CompletableFuture.supplyAsync(() -> monitor.report(own));
      assertThat(catchThrowable(() -> report.get(1500, TimeUnit.MILLISECONDS)))
          .isInstanceOf(TimeoutException.class);
      stuck.released.countDown();
      assertThat(report.get(60, TimeUnit.SECONDS)).isEqualTo(own);
      assertThat(monitor.isUnheard()).isFalse();
    }
  }

  @Test
  void aSilentStoreIsLaidAtTheRankThatServesIt() throws Exception {
    AgreedFailure known = reportInSilence(0, FailureEvent.Kind.TIMEOUT, -1);
    assertThat(known.failedRank()).isZero();
    assertThat(known.text()).isEqualTo("no data; rank 0, which serves the store, does not answer");
    assertThat(reportInSilence(0, FailureEvent.Kind.TIMEOUT, 2).failedRank()).isZero();
  }

  @Test
  void aSilentStoreOfNoRankIsLaidAtNobody() throws Exception {
    AgreedFailure known = reportInSilence(-1, FailureEvent.Kind.TIMEOUT, -1);
    assertThat(known.failedRank()).isEqualTo(-1);
    assertThat(known.text())
        .isEqualTo("no data; the store does not answer, so no rank can be asked");
  }

  @Test
  void aLostPeerIsNamedThoughTheStoreIsSilent() throws Exception {
    assertThat(reportInSilence(0, FailureEvent.Kind.PEER_LOST, 2).failedRank()).isEqualTo(2);
  }
}
