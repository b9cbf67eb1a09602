package com.example;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.testing.World;

class MeanTest {
  @World(sizes = {1, 4})
  void ranksMayHaveAnyNumberOfNumbers(ProcessGroup group) {
    // Rank 0 has one zero, rank 1 has two ones, and so on.
    double[] numbers = new double[group.rank() + 1];
    java.util.Arrays.fill(numbers, group.rank());
    assertThat(Mean.of(group, numbers)).isEqualTo(group.size() == 1 ? 0 : 2);
  }
}
