package dev.tutti.djl;

import ai.djl.engine.Engine;
import dev.tutti.ProcessGroup;
import dev.tutti.gradients.TrainingProgram;
import dev.tutti.testing.World;
import org.junit.jupiter.api.BeforeAll;

/** Random programs against c10d's rules: each has the right means, or an error on all ranks. */
@World(backends = "gloo", processes = true, timeoutSeconds = 3600)
class TrainerProgramsTest {
  @BeforeAll
  static void load() {
    Engine.getInstance();
  }

  @World(sizes = {2, 3})
  void meansAreRightOrAllRanksNameTheParameter(ProcessGroup group) {
    TrainingProgram.runAll(group, 60, TrainerProgram::new);
  }
}
