package dev.tutti.cuda;

import dev.tutti.gradients.BucketAllocator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests optimizers whose parameters are on this machine's GPUs. */
@ExtendWith(Gpu.class)
class GpuOptimizerTest {
  private final OptimizerCases cases =
      new OptimizerCases(new CudaRanks(Cuda.get()).besideHost(), BucketAllocator.standard());

  @Test
  void updatesAreThoseOfTheHost() throws Exception {
    cases.updates();
  }

  @Test
  void updatesFollowThePublishedFormulas() throws Exception {
    cases.formulas();
  }

  @Test
  void shorterParametersAreRoundedFromFloat32() throws Exception {
    cases.masterCopies();
  }

  @Test
  void clippingAndLossScalesAreThoseOfTheHost() throws Exception {
    cases.clippingAndLossScale();
  }

  @Test
  void flatParametersAreChangedAlike() throws Exception {
    cases.flatParameters();
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void replaysAreSteps(boolean isFlat) throws Exception {
    cases.replays(isFlat);
  }
}
