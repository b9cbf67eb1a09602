package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.fake.Faults;
import dev.tutti.fake.ThreadedWorld;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Runs the examples of package {@code dev.tutti.fake}. */
class FakeSnippetsTest {
  /** The examples have the default deadline, in which a busy machine may not load all classes. */
  @BeforeAll
  static void loadClasses() {
    ThreadedWorld.of(4)
        .withFaults(new Faults())
        .withTimeout(Duration.ofMinutes(4))
        .run(group -> group.allReduce(Tensor.of(1f)));
  }

  @Test
  void world() {
    // @start region="world"
    List<Float> sums =
        ThreadedWorld.call(
            4,
            group -> {
              Tensor tensor = Tensor.of((float) group.rank());
              group.allReduce(tensor);
              return tensor.getFloat(0); // 6 on each rank
            });
    // @end
    assertThat(sums).containsExactly(6f, 6f, 6f, 6f);
  }

  @Test
  void faults() {
    // @start region="faults"
    Faults faults = new Faults();
    ThreadedWorld.of(3)
        .withFaults(faults)
        .run(
            group -> {
              group.setTimeout(Duration.ofMillis(300));
              faults.partition(Set.of(1), Set.of(0, 2)); // rank 1 is cut off in both directions
              assertThatThrownBy(group::barrier).isInstanceOf(TuttiException.class);
            });
    // @end
  }
}
