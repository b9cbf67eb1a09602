package dev.tutti.cuda;

import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests copies, conversions and searches for NaN on this machine's first GPU. */
@ExtendWith(Gpu.class)
class GpuElementsTest {
  private final ElementCases cases = new ElementCases(Cuda.get().device(0));

  @Test
  void elementsAreConverted() {
    cases.conversions(3_000_001);
  }

  @Test
  void tensorsWithGapsAreCopied() {
    cases.strides();
    cases.oddAddresses();
    cases.unalignedNumbers();
  }

  @Test
  void whatCannotBeConvertedIsRefused() {
    cases.refusals();
  }

  @Test
  void nansAreFound() {
    cases.nans(3_000_001);
    cases.nansByIndex();
  }

  @Test
  void theRankWithTheNanIsNamed() throws Exception {
    ElementCases.theRankWithTheNanIsNamed(new CudaRanks(Cuda.get()));
    ElementCases.theRankWithTheNanIsNamed(
        new CudaRanks(Cuda.get()).on(new GlooProvider(List.of(new GlooCudaProvider(Cuda::get)))));
  }
}
