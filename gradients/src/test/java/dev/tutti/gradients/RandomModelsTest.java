package dev.tutti.gradients;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Compares the gradients of random models with a float64 reference. {@code -Dtutti.gradientSeed=N}
 * starts at another seed, {@code -Dtutti.gradientLargest=N} sets the size of the largest
 * parameters.
 */
class RandomModelsTest {
  private static final long SEED = Long.getLong("tutti.gradientSeed", 1);
  private static final int LARGEST = Integer.getInteger("tutti.gradientLargest", 1_000_000);

  private static void run(Worlds world, long seed, int largest) {
    RandomModel model = new RandomModel(seed, largest);
    System.out.println(world + " " + model);
    world.run(model.ranks(), model::run);
  }

  @ParameterizedTest
  @EnumSource
  void someModels(Worlds world) {
    for (int i = 0; i < 6; i++) {
      run(world, SEED + i, 3000);
    }
  }

  @Tag("full")
  @ParameterizedTest
  @EnumSource
  @Timeout(1200)
  void hundredsOfModels(Worlds world) {
    for (int i = 0; i < 200; i++) {
      run(world, SEED + 100_000 + i, 3000);
    }
  }

  @Tag("full")
  @Test
  @Timeout(1200)
  void largeModels() {
    for (int i = 0; i < 8; i++) {
      run(i % 2 == 0 ? Worlds.SHARED_MEMORY : Worlds.SOCKETS, SEED + 200_000 + i, LARGEST);
    }
  }
}
