package dev.tutti.fake.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.fake.simulation.Simulated;
import dev.tutti.fake.simulation.SimulatedWorld;
import dev.tutti.fake.simulation.Simulation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests how long close waits, and what it waits for. */
@Isolated("threads of other tests in shared locks would bring in real time")
class CloseTest {
  /** How long close waits, as shipped. */
  private static final Duration LIMIT = Duration.ofSeconds(5);

  private static final CallOptions FOR_LONG = CallOptions.ASYNC.withTimeout(Duration.ofMinutes(30));

  private final ScriptedProvider provider = new ScriptedProvider();
  private final List<String> order = new ArrayList<>();

  private GroupOptions options(int size) {
    return Simulation.options(0, size, Simulation.store(), provider);
  }

  private static Work allReduce(ProcessGroup group) {
    return group.allReduce(Tensor.of(1f), ReduceOp.SUM, FOR_LONG);
  }

  @Simulated
  void theBackendIsClosedAfterTheLastOperationOfAFailedGroup() throws Exception {
    CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch aborted = new CountDownLatch(1);
    provider.abort = cause -> aborted.countDown();
    provider.close = () -> order.add("close");
    provider.collective =
        op -> {
          entered.countDown();
          aborted.await();
          // Simulates a backend that takes a while to release its resources.
          SimulatedWorld.sleep(Duration.ofMillis(300));
          order.add("return");
          throw new IllegalStateException("aborted");
        };
    ProcessGroup group = ProcessGroup.init(options(1));
    Work work = allReduce(group);
    entered.await();
    group.abort("enough");
    var _ = Simulation.failure(group);
    group.close();
    assertThat(Simulation.now()).isEqualTo(Duration.ofMillis(300));
    assertThat(order).containsExactly("return", "close");
    assertThatThrownBy(work::await).hasMessageContaining("enough");
  }

  @Simulated
  void theSettingsSayHowLongCloseWaits() {
    CountDownLatch aborted = new CountDownLatch(1);
    provider.abort = cause -> aborted.countDown();
    provider.collective =
        op -> {
          aborted.await();
          throw new IllegalStateException("aborted");
        };
    GroupOptions options = options(1);
    ProcessGroup group = ProcessGroup.init(options.withSetting("TUTTI_CLOSE_TIMEOUT", "200ms"));
    Work work = allReduce(group);
    group.close();
    assertThat(Simulation.now()).isEqualTo(Duration.ofMillis(200));
    assertThatThrownBy(work::await).hasMessageContaining("closed with operations pending");
  }

  /** After its limit, close gives the backend a few seconds to end what it was asked to abort. */
  @Simulated
  void aWorkStuckInItsBackendEndsWithClose() {
    CountDownLatch never = new CountDownLatch(1);
    provider.collective = op -> never.await();
    ProcessGroup group = ProcessGroup.init(options(1));
    Work stuck = allReduce(group);
    Work queued = allReduce(group);
    group.close();
    assertThat(Simulation.now()).isEqualTo(LIMIT.plusSeconds(4));
    for (Work work : List.of(stuck, queued)) {
      assertThat(work.isCompleted()).isTrue();
      assertThatThrownBy(work::await)
          .isInstanceOf(CollectiveException.class)
          .hasMessageContaining("closed with operations pending");
    }
    never.countDown();
  }

  @Simulated
  void anInterruptedCloseClosesAllTheSame() {
    provider.recv = op -> {};
    provider.close = () -> order.add("close");
    ProcessGroup group = ProcessGroup.init(options(2));
    Work work = group.recv(Tensor.of(0f), 1, 0, CallOptions.ASYNC);
    Thread.currentThread().interrupt();
    group.close();
    assertThat(Simulation.now()).isZero();
    assertThat(Thread.interrupted()).isTrue();
    assertThat(order).containsExactly("close");
    assertThat(work.isCompleted()).isTrue();
  }

  @Simulated
  void closeIsBoundedWhenTheStoreHangs() {
    StuckStore store = new StuckStore();
    ProcessGroup group = ProcessGroup.init(options(1).withStore(store.around(Simulation.store())));
    store.stuck = true;
    group.close();
    assertThat(Simulation.now()).isEqualTo(Duration.ofSeconds(2));
    store.released.countDown();
  }

  @Simulated
  void subgroupsShareTheTimeForClosing() {
    provider.movesData = false;
    provider.recv = op -> {};
    ProcessGroup group = ProcessGroup.init(options(2));
    List<Work> works = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      ProcessGroup part = group.subgroup(List.of(0, 1)).orElseThrow();
      works.add(part.recv(Tensor.of(1f), 1, 0, CallOptions.ASYNC));
    }
    group.close();
    assertThat(Simulation.now()).isEqualTo(LIMIT);
    assertThat(works).hasSize(8).allMatch(Work::isCompleted);
  }

  @Simulated
  void theFlightRecordIsWrittenAfterAFailure(@TempDir Path folder) throws Exception {
    provider.collective =
        op -> {
          throw new IllegalStateException("broken");
        };
    GroupOptions options =
        Simulation.with(
            options(1), "TORCH_FR_DUMP_TEMP_FILE", folder.resolve("failed_").toString());
    Path file = folder.resolve("flight-record-0.json");
    try (ProcessGroup group = ProcessGroup.init(options)) {
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f))).hasMessageContaining("broken");
      Simulation.until(() -> Files.exists(file));
    }
    assertThat(Files.readString(file)).contains("\"work_state\":\"FAILED\"");
    Files.delete(file);
  }
}
