package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import org.junit.jupiter.api.parallel.Isolated;

/** Runs the example of {@link World}. */
@Isolated("the shared memory of other tests would count as left by its world")
class WorldSnippetsTest {
  // @start region="world"
  @World(size = 4)
  void ranksAddUp(ProcessGroup group, @Rank int rank) {
    Tensor tensor = Tensor.of((float) rank);
    group.allReduce(tensor);
    assertThat(tensor.getFloat(0)).isEqualTo(6);
  }
  // @end
}
