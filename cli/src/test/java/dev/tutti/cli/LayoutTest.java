package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.aeron.AeronStore;
import dev.tutti.cpu.HostReducer;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.store.HashStore;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tests that modules depend on each other as docs/architecture.md says. */
class LayoutTest {
  /** Names the modules that each one may use. */
  private static final Map<String, Set<String>> MAY_USE =
      Map.of(
          "api", Set.of(),
          "cpu", Set.of("api"),
          "store", Set.of("api", "cpu"),
          "runtime", Set.of("api", "cpu", "store"),
          "kernels", Set.of("api"),
          "fake", Set.of("api", "cpu", "store"),
          "gloo", Set.of("api", "cpu", "store"),
          "cuda", Set.of("api", "cpu", "store", "kernels", "gloo"),
          "aeron", Set.of("api", "cpu", "store"),
          "cli", Set.of("api", "cpu", "store", "runtime", "aeron"));

  private static final ClassGraph GRAPH = new ClassGraph();

  @BeforeAll
  static void read() throws Exception {
    GRAPH.read("api", ProcessGroup.class);
    GRAPH.read("cpu", HostReducer.class);
    GRAPH.read("store", HashStore.class);
    GRAPH.read("runtime", RuntimeSettings.class);
    GRAPH.read("aeron", AeronStore.class);
    GRAPH.read("cli", Main.class);
    // Not on the path that this is compiled with.
    GRAPH.read("kernels", Class.forName("dev.tutti.kernels.AllReduceLimits"));
    GRAPH.read("fake", Class.forName("dev.tutti.fake.FakeProvider"));
    GRAPH.read("gloo", Class.forName("dev.tutti.gloo.GlooProvider"));
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
}
