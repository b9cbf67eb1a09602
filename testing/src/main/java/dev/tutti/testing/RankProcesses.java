package dev.tutti.testing;

import dev.tutti.Store;
import dev.tutti.store.tcp.TcpStore;
import dev.tutti.store.tcp.TcpStoreServer;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalInt;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.opentest4j.TestAbortedException;

/** A runner of a {@link World} test with one process for each rank; see {@link RankProcessMain}. */
final class RankProcesses {
  /*
   * This process serves the store, where the ranks meet. When ranks fail, they leave there what
   * they threw, which rank was first, and which other rank each of them blames. A rank ends by
   * itself, with a report, if it does not join its group within the world's deadline, or if its body
   * does not end within that deadline then; this process waits a little longer and then kills the
   * ranks that are left. Once a rank has failed, the others have half a minute to notice.
   * The exit code of a rank that passed is not 0, because that is the code of a body that ends its
   * process itself.
   */
  static final String FIRST_FAILURE = "first-failure";
  static final String FAILURE = "failure/";
  static final String BLAMED = "blamed/";
  static final int FAILED = 10;
  static final int PASSED = 11;
  static final int ABORTED = 12;

  private static final Duration START_UP = Duration.ofSeconds(60);
  private static final Duration AFTER_FAILURE = Duration.ofSeconds(30);
  private static final List<String> INHERITED_OPTIONS =
      List.of("--enable-native-access", "--enable-preview", "--add-", "--sun-misc-");

  private final WorldPlan plan;
  private final Method method;
  private final Class<?> testClass;
  private final List<RankProcess> ranks = new ArrayList<>();

  RankProcesses(WorldPlan plan, Method method, Class<?> testClass) {
    this.plan = plan;
    this.method = method;
    this.testClass = testClass;
  }

  /**
   * Runs all ranks, and throws what the first failing one reported, or the one that it blames if
   * that one failed by itself.
   */
  void run() throws IOException, InterruptedException {
    if (testClass.getModule().isNamed()) {
      throw new ExtensionConfigurationException(
          ("processes = true needs tests on the class path (in Surefire: useModulePath = false),"
                  + " but %s is in %s")
              .formatted(testClass.getName(), testClass.getModule()));
    }
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (TcpStoreServer server = new TcpStoreServer(loopback, 0);
        Store store = new TcpStore(loopback.getHostAddress(), server.port())) {
      for (int rank = 0; rank < plan.size(); rank++) {
        ranks.add(new RankProcess(rank, command(rank, loopback, server.port())));
      }
      awaitEnd();
      throwFailure(store);
    } finally {
      ranks.forEach(RankProcess::kill);
    }
  }

  private List<String> command(int rank, InetAddress host, int port) {
    List<String> command = new ArrayList<>();
    command.add(
        ProcessHandle.current()
            .info()
            .command()
            .orElseGet(() -> Path.of(System.getProperty("java.home"), "bin", "java").toString()));
    for (String option : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (INHERITED_OPTIONS.stream().anyMatch(option::startsWith)) {
        command.add(option);
      }
    }
    // Surefire sets properties without options.
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("tutti."))
        .forEach(name -> command.add("-D" + name + "=" + System.getProperty(name)));
    // It enables assertions so, too.
    if (testClass.desiredAssertionStatus()) {
      command.add("-enableassertions");
    }
    command.addAll(List.of("-cp", ManagementFactory.getRuntimeMXBean().getClassPath()));
    command.add(RankProcessMain.class.getName());
    String parameterTypes =
        Arrays.stream(method.getParameterTypes())
            .map(Class::getName)
            .collect(Collectors.joining(","));
    command.addAll(
        List.of(
            testClass.getName(),
            method.getName(),
            parameterTypes,
            plan.backend(),
            Integer.toString(rank),
            Integer.toString(plan.size()),
            host.getHostAddress() + File.pathSeparator + port,
            Long.toString(plan.timeout().toMillis())));
    return command;
  }

  private void awaitEnd() throws InterruptedException {
    long deadline = System.nanoTime() + plan.timeout().multipliedBy(2).plus(START_UP).toNanos();
    boolean failed = false;
    while (ranks.stream().anyMatch(RankProcess::isAlive)) {
      if (!failed && ranks.stream().anyMatch(RankProcess::hasFailed)) {
        failed = true;
        long now = System.nanoTime();
        deadline = now + Math.min(deadline - now, AFTER_FAILURE.toNanos());
      }
      if (System.nanoTime() - deadline > 0) {
        return;
      }
      awaitAny();
    }
  }

  /** Waits briefly for one of the running ranks to end. */
  private void awaitAny() throws InterruptedException {
    for (RankProcess rank : ranks) {
      if (rank.isAlive()) {
        rank.await(20, TimeUnit.MILLISECONDS);
        return;
      }
    }
  }

  private void throwFailure(Store store) {
    List<RankProcess> bad =
        ranks.stream().filter(rank -> rank.isAlive() || rank.hasFailed()).toList();
    if (bad.isEmpty()) {
      return;
    }
    int first = toBlame(bad, store);
    Throwable primary = failureOf(ranks.get(first), store);
    for (RankProcess other : bad) {
      if (other.rank() != first) {
        primary.addSuppressed(failureOf(other, store));
      }
    }
    if (primary instanceof TestAbortedException aborted) {
      throw aborted;
    }
    throw (AssertionError) primary;
  }

  private static int toBlame(List<RankProcess> bad, Store store) {
    int first = number(store, FIRST_FAILURE).orElse(bad.get(0).rank());
    int blamed = number(store, BLAMED + first).orElse(first);
    boolean failedItself =
        bad.stream().anyMatch(rank -> rank.rank() == blamed)
            && number(store, BLAMED + blamed).isEmpty();
    return failedItself ? blamed : first;
  }

  private static OptionalInt number(Store store, String key) {
    return store.check(List.of(key))
        ? OptionalInt.of(Integer.parseInt(text(store, key)))
        : OptionalInt.empty();
  }

  private static Throwable failureOf(RankProcess rank, Store store) {
    String key = FAILURE + rank.rank();
    String thrown = store.check(List.of(key)) ? text(store, key) : "";
    if (!rank.isAlive() && rank.exitCode() == ABORTED) {
      return new TestAbortedException("rank " + rank.rank() + ": " + thrown);
    }
    String how =
        rank.isAlive()
            ? "did not end in time and is killed"
            : "ended with exit code " + rank.exitCode();
    return new AssertionError(
        "rank %s (process %s) %s%s\nits last output:\n%s"
            .formatted(
                rank.rank(),
                rank.pid(),
                how,
                thrown.isEmpty() ? "" : ":\n" + thrown,
                rank.lastOutput()));
  }

  private static String text(Store store, String key) {
    return new String(store.get(key), StandardCharsets.UTF_8);
  }
}
