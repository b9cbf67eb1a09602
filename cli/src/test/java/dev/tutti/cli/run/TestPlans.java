package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/** Launch plans for tests, and a search for the processes of a launch. */
final class TestPlans {
  static final List<String> DEFAULT_SIGNALS = defaultSignals();

  private TestPlans() {}

  static LaunchPlan shell(int ranks, String script) {
    return of(ranks, 0, Optional.empty(), "sh", "-c", script);
  }

  /**
   * Returns a prefix that gives a command the default signal handling. A build that runs in the
   * background or under nohup ignores some signals; its children inherit that, and Java and shells
   * leave it so.
   */
  private static List<String> defaultSignals() {
    List<String> env = List.of("env", "--default-signal=HUP,INT,QUIT,TERM");
    List<String> probe = new ArrayList<>(env);
    probe.add("true");
    try {
      Process process = new ProcessBuilder(probe).start();
      return process.waitFor(60, TimeUnit.SECONDS) && process.exitValue() == 0 ? env : List.of();
    } catch (IOException e) {
      return List.of(); // no such program here
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return List.of();
    }
  }

  /** Returns a plan with other logs, another time to end, and another cache. */
  static LaunchPlan with(
      LaunchPlan plan, Optional<Path> logs, Duration grace, Optional<AotCache> cache) {
    return with(plan, logs, plan.tailLines(), plan.linger(), grace, cache);
  }

  /** Returns a plan whose ranks may continue for the given time after the first has failed. */
  static LaunchPlan lingering(LaunchPlan plan, Duration linger) {
    return with(plan, plan.logDirectory(), plan.tailLines(), linger, plan.grace(), plan.aotCache());
  }

  /** Returns a plan whose reports show no last lines. */
  static LaunchPlan withoutTail(LaunchPlan plan) {
    return with(plan, plan.logDirectory(), 0, plan.linger(), plan.grace(), plan.aotCache());
  }

  /** Returns a plan in which other processes take the places of those that fail. */
  static LaunchPlan elastic(LaunchPlan plan) {
    return with(
        plan,
        plan.logDirectory(),
        plan.tailLines(),
        plan.linger(),
        plan.grace(),
        plan.aotCache(),
        true);
  }

  private static LaunchPlan with(
      LaunchPlan plan,
      Optional<Path> logs,
      int tailLines,
      Duration linger,
      Duration grace,
      Optional<AotCache> cache) {
    return with(plan, logs, tailLines, linger, grace, cache, plan.isElastic());
  }

  private static LaunchPlan with(
      LaunchPlan plan,
      Optional<Path> logs,
      int tailLines,
      Duration linger,
      Duration grace,
      Optional<AotCache> cache,
      boolean isElastic) {
    return new LaunchPlan(
        plan.command(),
        plan.localSize(),
        plan.nodes(),
        plan.nodeRank(),
        plan.masterAddress(),
        plan.masterPort(),
        plan.maxRestarts(),
        plan.runId(),
        plan.role(),
        logs,
        tailLines,
        linger,
        grace,
        plan.rendezvousTimeout(),
        plan.environment(),
        cache,
        isElastic,
        Optional.empty());
  }

  static LaunchPlan of(int ranks, int maxRestarts, Optional<Path> logs, String... command) {
    List<String> whole = new ArrayList<>(command[0].equals("sh") ? DEFAULT_SIGNALS : List.of());
    whole.addAll(List.of(command));
    Map<String, String> environment = new HashMap<>();
    environment.put("PATH", System.getenv("PATH"));
    return new LaunchPlan(
        whole,
        ranks,
        1,
        0,
        "127.0.0.1",
        0,
        maxRestarts,
        UUID.randomUUID().toString(),
        "default",
        logs,
        20,
        Duration.ZERO,
        Duration.ofMinutes(1),
        Duration.ofMinutes(1),
        environment,
        Optional.empty(),
        false,
        Optional.empty());
  }

  /** Returns the process ids that carry a launch's run id in their environment. */
  static List<Long> processesOf(String runId) {
    String needle = "TORCHELASTIC_RUN_ID=" + runId;
    try (Stream<ProcessHandle> all = ProcessHandle.allProcesses()) {
      return all.map(ProcessHandle::pid).filter(pid -> hasVariable(pid, needle)).toList();
    }
  }

  /** Waits until no process carries a launch's run id; a killed one must get a processor to end. */
  static void awaitNoProcessOf(String runId) {
    long deadline = System.nanoTime() + Duration.ofMinutes(4).toNanos();
    while (!processesOf(runId).isEmpty() && System.nanoTime() - deadline < 0) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(processesOf(runId)).isEmpty();
  }

  private static boolean hasVariable(long pid, String variable) {
    try {
      String all = Files.readString(Path.of("/proc/" + pid + "/environ"));
      return Arrays.asList(all.split("\0")).contains(variable);
    } catch (IOException e) {
      return false; // it has ended in the meantime, or is another user's
    } catch (UncheckedIOException e) {
      return false;
    }
  }
}
