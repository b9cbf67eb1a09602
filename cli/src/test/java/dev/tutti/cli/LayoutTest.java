package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.aeron.AeronStore;
import dev.tutti.cpu.HostReducer;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.store.HashStore;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.function.Function;
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
          Map.entry("cuda", Set.of("api", "cpu", "store", "kernels", "gloo")),
          Map.entry("aeron", Set.of("api", "cpu", "store")),
          Map.entry("cli", Set.of("api", "cpu", "store", "runtime", "aeron")));

  private static final int LARGEST_CIRCLE = 16;

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
              "dev.tutti.cuda.block",
              "dev.tutti.cuda.driver",
              "dev.tutti.cuda.memory",
              "dev.tutti.cuda.share"));

  private static final ClassGraph GRAPH = new ClassGraph();

  @BeforeAll
  static void read() throws Exception {
    GRAPH.read("api", ProcessGroup.class);
    GRAPH.read("cpu", HostReducer.class);
    GRAPH.read("store", HashStore.class);
    GRAPH.read("runtime", RuntimeSettings.class);
    GRAPH.read("aeron", AeronStore.class);
    GRAPH.read("cli", Main.class);
    // Not on the class path with which this test is compiled.
    GRAPH.read("kernels", Class.forName("dev.tutti.kernels.AllReduceLimits"));
    GRAPH.read("fake", Class.forName("dev.tutti.fake.FakeProvider"));
    GRAPH.read("gloo", Class.forName("dev.tutti.gloo.GlooProvider"));
    GRAPH.read("gradients", Class.forName("dev.tutti.gradients.GradientReducer"));
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
  void circlesOfClassesStaySmall() {
    List<NavigableSet<String>> circles = GRAPH.circles(Function.identity());
    int inCircles = circles.stream().mapToInt(Set::size).sum();
    System.out.printf(
        "%d of %d classes are in %d circles, the largest of %d%n",
        inCircles, GRAPH.uses().size(), circles.size(), circles.getFirst().size());
    assertThat(circles)
        .allSatisfy(circle -> assertThat(circle).hasSizeLessThanOrEqualTo(LARGEST_CIRCLE));
  }
}
