package dev.tutti.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/** Runs the example of {@link World}. */
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
