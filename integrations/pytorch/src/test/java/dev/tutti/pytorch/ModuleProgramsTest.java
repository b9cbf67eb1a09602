package dev.tutti.pytorch;

import dev.tutti.ProcessGroup;
import dev.tutti.gradients.TrainingProgram;
import dev.tutti.testing.World;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;

/** Random programs against c10d's rules: each has the right means, or an error on all ranks. */
@World(backends = "gloo", timeoutSeconds = 3600)
class ModuleProgramsTest {
  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  @World(sizes = {2, 3})
  void meansAreRightOrAllRanksNameTheParameter(ProcessGroup group) {
    TrainingProgram.runAll(group, 200, ModuleProgram::new);
  }
}
