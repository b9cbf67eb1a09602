package dev.tutti.cuda;

import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Tests copies, conversions and searches for NaN on a fake device. */
class CudaElementsTest {
  @AutoClose private final FakeMachine machine = new FakeMachine(1);
  private final ElementCases cases = new ElementCases(machine.cuda.device(0));

  @Test
  void elementsAreConverted() {
    cases.conversions(1000);
  }

  @Test
  void tensorsWithGapsAreCopied() {
    cases.strides();
  }

  @Test
  void whatCannotBeConvertedIsRefused() {
    cases.refusals();
  }

  @Test
  void nansAreFound() {
    cases.nans(1000);
    cases.nansByIndex();
  }
}
