package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.aeron.AeronStore;
import dev.tutti.aeron.cluster.AeronClusterStore;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.cpu.HostReducer;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.store.HashStore;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Tests that modules, packages and classes depend on each other as docs/architecture.md describes.
 */
class LayoutTest {
  /** The modules that each module may use. */
  private static final Map<String, Set<String>> MAY_USE =
      Map.ofEntries(
          Map.entry("api", Set.of()),
          Map.entry("cpu", Set.of("api")),
          Map.entry("store", Set.of("api", "cpu")),
          Map.entry("runtime", Set.of("api", "cpu", "store")),
          Map.entry("kernels", Set.of("api")),
          Map.entry("fake", Set.of("api", "cpu", "store")),
          Map.entry("gloo", Set.of("api", "cpu", "store")),
          Map.entry("gradients", Set.of("api")),
          Map.entry("checkpoint", Set.of("api")),
          Map.entry("cuda", Set.of("api", "cpu", "store", "kernels", "gloo")),
          Map.entry("aeron", Set.of("api", "cpu", "store")),
          Map.entry("aeron-cluster", Set.of("api", "cpu", "store", "aeron")),
          Map.entry(
              "cli",
              Set.of("api", "cpu", "store", "runtime", "aeron", "aeron-cluster", "checkpoint")));

  /** The number of classes in the largest circle, and in all; both may only fall. */
  private static final int LARGEST_CIRCLE = 6;

  private static final int IN_CIRCLES = 86;

  /** The most classes that a package may have, other than that of the API. */
  private static final int MOST_IN_PACKAGE = 40;

  /**
   * The packages that still name each other; no other packages of Tutti do. What users see of a
   * backend is above its parts, which take it as arguments; contracts and the SPI are one layer.
   */
  private static final List<Set<String>> KNOWN_CIRCLES =
      List.of(
          Set.of("dev.tutti", "dev.tutti.spi"),
          Set.of(
              "dev.tutti.cuda",
              "dev.tutti.cuda.access",
              "dev.tutti.cuda.driver",
              "dev.tutti.cuda.memory"));

  /** The modules that wait only by a {@code dev.tutti.spi.Time} that is handed in. */
  private static final Set<String> TIMED = Set.of("api", "cpu", "store", "runtime", "fake", "gloo");

  /** Those in which nobody may guess a number, so that no simulation may choose it. */
  private static final Set<String> SECRET =
      Set.of(
          "dev.tutti.store.JobToken",
          "dev.tutti.gloo.shm.StaleFiles",
          "dev.tutti.gloo.transport.SlotTable",
          "dev.tutti.runtime.debug.PageAccess");

  /** Where users come in without a time, and what there is once in a process. */
  private static final Set<String> CHOOSERS =
      Set.of(
          "dev.tutti.GroupOptions",
          "dev.tutti.spi.BackendContext",
          "dev.tutti.spi.StoreProvider",
          "dev.tutti.spi.Time",
          "dev.tutti.cpu.memory.SharedHeap",
          "dev.tutti.store.HashStore",
          "dev.tutti.store.file.FileStore",
          "dev.tutti.store.tcp.TcpStoreOptions",
          "dev.tutti.store.tcp.TcpStoreServer",
          "dev.tutti.runtime.group.Checks",
          "dev.tutti.runtime.group.FlightRecords",
          "dev.tutti.runtime.operation.PerTime",
          "dev.tutti.fake.ThreadedProvider",
          "dev.tutti.fake.ThreadedWorld");

  /** How many calls of the real clock, timed waits and so on the other modules make at most. */
  private static final Map<String, Integer> REAL_TIME =
      Map.of("aeron", 24, "aeron-cluster", 13, "cuda", 46, "cli", 26, "gradients", 9);

  private static final ClassGraph GRAPH = new ClassGraph();

  @BeforeAll
  static void read() throws Exception {
    GRAPH.read("api", ProcessGroup.class);
    GRAPH.read("cpu", HostReducer.class);
    GRAPH.read("store", HashStore.class);
    GRAPH.read("runtime", RuntimeSettings.class);
    GRAPH.read("aeron", AeronStore.class);
    GRAPH.read("aeron-cluster", AeronClusterStore.class);
    GRAPH.read("cli", Main.class);
    // Not on the class path with which this test is compiled.
    GRAPH.read("kernels", Class.forName("dev.tutti.kernels.AllReduceLimits"));
    GRAPH.read("fake", Class.forName("dev.tutti.fake.FakeProvider"));
    GRAPH.read("gloo", Class.forName("dev.tutti.gloo.GlooProvider"));
    GRAPH.read("gradients", Class.forName("dev.tutti.gradients.GradientReducer"));
    GRAPH.read("checkpoint", Checkpoints.class);
    GRAPH.read("cuda", Class.forName("dev.tutti.cuda.Cuda"));
  }

  @Test
  void modulesUseNoOthersThanTheyMay() {
    SortedSet<String> wrong = new TreeSet<>();
    GRAPH
        .uses()
        .forEach(
            (name, used) -> {
              String from = GRAPH.moduleOf(name);
              for (String other : used) {
                String to = GRAPH.moduleOf(other);
                if (to == null || (!to.equals(from) && !MAY_USE.get(from).contains(to))) {
                  wrong.add(from + ": " + name + " uses " + other + " of " + to);
                }
              }
            });
    assertThat(wrong).isEmpty();
    assertThat(GRAPH.uses()).as("classes that were read").hasSizeGreaterThan(600);
  }

  @Test
  void packagesAreInNoOtherCircles() {
    assertThat(GRAPH.circles(ClassGraph::packageOf))
        .allSatisfy(
            circle ->
                assertThat(KNOWN_CIRCLES)
                    .anySatisfy(known -> assertThat(known).containsAll(circle)));
  }

  @Test
  void onlyThePackageOfTheApiHasMoreThan40Classes() {
    Map<String, Long> sizes =
        GRAPH.uses().keySet().stream()
            .filter(name -> !name.endsWith("package-info"))
            .collect(Collectors.groupingBy(ClassGraph::packageOf, Collectors.counting()));
    assertThat(sizes).containsKey("dev.tutti.cli.run");
    sizes.values().removeIf(count -> count <= MOST_IN_PACKAGE);
    assertThat(sizes).containsOnlyKeys("dev.tutti");
  }

  /** So that it can be an artifact by itself. */
  @Test
  void nothingElseUsesCudaIpc() {
    String ipc = "dev.tutti.cuda.ipc";
    SortedSet<String> users = new TreeSet<>();
    GRAPH
        .uses()
        .forEach(
            (name, used) -> {
              if (used.stream().anyMatch(other -> ClassGraph.packageOf(other).equals(ipc))) {
                users.add(ClassGraph.packageOf(name));
              }
            });
    assertThat(users).containsExactly(ipc);
  }

  @Test
  void circlesOfClassesAreAsSmallAsTheirLimitsSay() {
    List<NavigableSet<String>> circles = GRAPH.circles(Function.identity());
    System.out.println("circles of classes: " + circles);
    assertThat(circles.getFirst().size())
        .as("the largest circle is %s; lower the limit where it could be", circles.getFirst())
        .isEqualTo(LARGEST_CIRCLE);
    assertThat(circles.stream().mapToInt(Set::size).sum())
        .as("classes in circles; lower the limit where it could be")
        .isEqualTo(IN_CIRCLES);
  }

  @Test
  void onlyTimeReadsTheClockWaitsAndCreatesThreads() {
    SortedMap<String, Set<String>> callers = RealTime.callers(GRAPH, TIMED);
    assertThat(callers).containsKey("dev.tutti.spi.SystemTime");
    callers.remove("dev.tutti.spi.SystemTime");
    SECRET.forEach(
        name ->
            assertThat(callers.remove(name))
                .as(name)
                .containsExactly("java.security.SecureRandom.<init>()V"));
    assertThat(callers).isEmpty();
  }

  @Test
  void onlyEntriesChooseTheTimeOfThisMachine() {
    assertThat(RealTime.choosers(GRAPH, TIMED)).isEqualTo(new TreeSet<>(CHOOSERS));
  }

  @Test
  void theOtherModulesCallRealTimeNoMoreOften() {
    REAL_TIME.forEach(
        (module, most) ->
            assertThat(RealTime.count(GRAPH, module)).as(module).isLessThanOrEqualTo(most));
  }
}
