package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.THROWABLE;
import static org.junit.platform.engine.TestExecutionResult.Status.ABORTED;

import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.shared.Until;
import dev.tutti.testkit.Execution;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.ResourceAccessMode;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.opentest4j.TestAbortedException;

/** Tests {@link World} with processes, and its effects visible to the operating system. */
@Order(1)
@ResourceLock(value = "shared memory that worlds leave", mode = ResourceAccessMode.READ)
class WorldProcessesTest {
  @Test
  void ranksMayBeProcesses() {
    System.setProperty("tutti.worldProcessesTest", "for all ranks");
    Execution execution = Execution.of(Processes.class);
    assertThat(execution.failures()).isEmpty();
    assertThat(execution.names()).containsExactly("meet [size=2, backend=fake, processes]");
  }

  static class Processes {
    @World(size = 2, backends = "fake", processes = true, timeoutSeconds = 200)
    void meet(ProcessGroup group, Store store, @Rank int rank) {
      assertThat(rank).isEqualTo(group.rank());
      assertThat(System.getProperty("tutti.worldProcessesTest")).isEqualTo("for all ranks");
      assertThat(Thread.currentThread().getName()).isEqualTo("rank-" + rank);
      store.set("pid/" + rank, Long.toString(ProcessHandle.current().pid()));
      String other = new String(store.get("pid/" + (1 - rank)), StandardCharsets.UTF_8);
      assertThat(Long.parseLong(other)).isNotEqualTo(ProcessHandle.current().pid());
      group.barrier();
    }
  }

  @Test
  void theFirstFailingProcessIsReported() {
    Throwable thrown =
        Execution.of(FailingProcess.class).thrownBy("fails [size=2, backend=fake, processes]");
    assertThat(thrown)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("rank 1 (process ")
        .hasMessageContaining("IllegalStateException: no good")
        .hasMessageContaining("FailingProcess.fails")
        .hasMessageContaining("a last word");
    assertThat(thrown.getSuppressed())
        .hasSize(1)
        .allSatisfy(
            other ->
                assertThat(other).hasMessageContaining("rank 0").hasMessageContaining("no good"));
  }

  static class FailingProcess {
    @World(size = 2, backends = "fake", processes = true, timeoutSeconds = 200)
    void fails(ProcessGroup group) {
      // A process may take a minute to start.
      group.store().barrier("begun", 2, Duration.ofMinutes(3));
      if (group.rank() == 1) {
        System.out.println("a last word");
        throw new IllegalStateException("no good");
      }
      Until.holds(() -> group.failure().isPresent());
      group.barrier();
    }
  }

  @Test
  void theProcessThatTheFirstBlamesIsReported() {
    Throwable thrown =
        Execution.of(BlamedProcess.class).thrownBy("fails [size=2, backend=fake, processes]");
    assertThat(thrown)
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("rank 1 (process ")
        .hasMessageContaining("IllegalStateException: no more data");
    assertThat(thrown.getSuppressed())
        .singleElement()
        .asInstanceOf(THROWABLE)
        .hasMessageContaining("rank 0 (process ")
        .hasMessageContaining("PeerFailedException: barrier refused");
  }

  static class BlamedProcess {
    @World(size = 2, backends = "fake", processes = true, timeoutSeconds = 200)
    void fails(ProcessGroup group, Store store) throws Exception {
      store.barrier("begun", 2, Duration.ofMinutes(3));
      if (group.rank() == 0) {
        store.set("pid", Long.toString(ProcessHandle.current().pid()));
        Until.holds(() -> group.failure().isPresent());
        group.barrier();
      }
      long other = Long.parseLong(new String(store.get("pid"), StandardCharsets.UTF_8));
      group.abort("no more data");
      Optional<ProcessHandle> process = ProcessHandle.of(other);
      if (process.isPresent()) {
        process.get().onExit().get(60, TimeUnit.SECONDS);
      }
      throw new IllegalStateException("no more data");
    }
  }

  @Test
  void assertStatementsAreCheckedAsInOtherTests() {
    ClassLoader loader = AssertingProcess.class.getClassLoader();
    String name = AssertingProcess.class.getName();
    loader.setClassAssertionStatus(name, true);
    try {
      assertThat(
              Execution.of(AssertingProcess.class)
                  .thrownBy("asserts [size=1, backend=fake, processes]"))
          .hasMessageContaining("AssertionError: one is not two");
    } finally {
      loader.setClassAssertionStatus(name, WorldProcessesTest.class.desiredAssertionStatus());
    }
  }

  static class AssertingProcess {
    @World(size = 1, backends = "fake", processes = true, timeoutSeconds = 200)
    void asserts(ProcessGroup group) {
      assert group.size() == 2 : "one is not two";
    }
  }

  @Test
  void aKilledProcessIsReported() {
    Throwable thrown =
        Execution.of(KilledProcess.class).thrownBy("dies [size=1, backend=fake, processes]");
    assertThat(thrown)
        .hasMessageContaining("rank 0 (process ")
        .hasMessageContaining("ended with exit code 77");
  }

  static class KilledProcess {
    @World(size = 1, backends = "fake", processes = true, timeoutSeconds = 200)
    void dies() {
      Runtime.getRuntime().halt(77);
    }
  }

  @Test
  void aBodyThatEndsItsProcessDoesNotPass() {
    assertThat(
            Execution.of(ExitingProcess.class).thrownBy("exits [size=1, backend=fake, processes]"))
        .hasMessageContaining("ended with exit code 0");
  }

  static class ExitingProcess {
    @World(size = 1, backends = "fake", processes = true, timeoutSeconds = 200)
    void exits() {
      Runtime.getRuntime().halt(0);
    }
  }

  @Test
  void aHangingProcessReportsItsThreads() {
    assertThat(
            Execution.of(HangingProcess.class).thrownBy("hangs [size=1, backend=fake, processes]"))
        .hasMessageContaining("did not end within 3 s")
        .hasMessageContaining("HangingProcess.hangs")
        .hasMessageContaining("flight record");
  }

  static class HangingProcess {
    @World(size = 1, backends = "fake", processes = true, timeoutSeconds = 3)
    void hangs() throws InterruptedException {
      new CountDownLatch(1).await();
    }
  }

  @Test
  void aSkippedProcessTellsItsReason() {
    Execution execution = Execution.of(SkippingProcess.class);
    String name = "skips [size=1, backend=fake, processes]";
    assertThat(execution.status(name)).isEqualTo(ABORTED);
    assertThat(execution.thrownBy(name)).hasMessageContaining("not on this machine");
  }

  static class SkippingProcess {
    @World(size = 1, backends = "fake", processes = true, timeoutSeconds = 200)
    void skips() {
      throw new TestAbortedException("not on this machine");
    }
  }
}
