package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Fds;
import dev.tutti.cuda.Until;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that groups give back what their ranks share. */
@Isolated("counts the descriptors of the process")
class SymmetricMemoryReuseTest {
  @Test
  void whatIsSharedIsFreedAndSetUpAgainManyTimes() throws Exception {
    try (FakeMachine machine = new FakeMachine(4)) {
      int before = Fds.open().size();
      for (int i = 0; i < 25; i++) {
        new CudaRanks(machine.cuda)
            .run(
                2,
                (group, device) -> {
                  try (var memory = group.allocateSymmetric(100)) {
                    memory.barrier(0, Until.LONG);
                  }
                  group.barrier();
                });
      }
      assertThat(Fds.open()).hasSizeLessThan(before + 20);
      assertThat(machine.fake.living("addresses")).isLessThan(12);
    }
  }
}
