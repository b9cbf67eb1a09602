package dev.tutti.gradients;

import dev.tutti.ProcessGroup;
import dev.tutti.testing.World;
import org.junit.jupiter.api.Order;

/** Reduces the gradients of random models between processes. */
@Order(1)
class ProcessesTest {
  @World(
      sizes = {2, 3},
      backends = "gloo",
      processes = true,
      timeoutSeconds = 200)
  void processesAgreeWithTheReference(ProcessGroup group) throws Exception {
    for (int seed = 1; seed <= 3; seed++) {
      new RandomModel(300_000 + seed, group.size(), 3000).run(group);
    }
  }
}
