package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.testing.Rank;
import dev.tutti.testing.World;
import org.junit.jupiter.api.parallel.Isolated;

/** Runs the ranks of a JUnit test on Gloo, as threads and as processes. */
@World(
    sizes = {1, 3},
    backends = "gloo",
    timeoutSeconds = 200)
@Isolated("the shared memory of other tests would count as left by its worlds")
class WorldAnnotationTest {
  @World
  void threads(ProcessGroup group, @Rank int rank) {
    addUp(group, rank);
  }

  @World(processes = true)
  void processes(ProcessGroup group, @Rank int rank) {
    addUp(group, rank);
  }

  private static void addUp(ProcessGroup group, int rank) {
    assertThat(group.backends()).containsEntry("cpu", "gloo");
    Tensor tensor = Tensor.of(rank, 1f);
    group.allReduce(tensor);
    float size = group.size();
    assertThat(tensor.toFloatArray()).containsExactly(size * (size - 1) / 2, size);
  }
}
