package dev.tutti.pytorch;

import dev.tutti.ProcessGroup;
import dev.tutti.testing.World;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.global.torch;
import org.junit.jupiter.api.BeforeAll;

/** Random programs against c10d's rules: each has the right means, or an error on all ranks. */
@World(backends = "gloo", timeoutSeconds = 3600)
class ModuleProgramsTest {
  private static final long FIRST = Long.getLong("tutti.fuzzSeed", 1);
  private static final int PROGRAMS = Integer.getInteger("tutti.modulePrograms", 200);

  @BeforeAll
  static void load() {
    Loader.load(torch.class);
  }

  @World(sizes = {2, 3})
  void meansAreRightOrAllRanksNameTheParameter(ProcessGroup group) {
    for (long seed = FIRST; seed < FIRST + PROGRAMS; seed++) {
      ProcessGroup own = group.split(0, group.rank()).orElseThrow();
      new ModuleProgram(seed, own).run();
      own.close();
      group.barrier();
    }
  }
}
