package dev.tutti.cuda;

/** Tests that a step whose gradients move by copies is captured into a graph and replayed. */
class CopiedStepTest extends CapturedStepTest {
  @Override
  CudaRanks ranks() {
    return super.ranks().with("TUTTI_X_CUDA_COPIES_BYTES", "1");
  }
}
