package dev.tutti.cuda.element;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.ElementCases;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.driver.GraphCalls;
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
    cases.oddAddresses();
    cases.unalignedNumbers();
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

  /** A graph would copy through memory that others have by then. */
  @Test
  void whatNeedsTemporaryMemoryIsNotCaptured() {
    CudaDevice device = machine.cuda.device(0);
    Tensor source = device.tensors().allocate(DType.FLOAT32, 3, 4).transpose(0, 1);
    Tensor target = device.tensors().allocate(DType.FLOAT16, 4, 3);
    Tensor floats = device.tensors().allocate(DType.FLOAT32, 4, 3);
    GraphCalls graphs = machine.fake.driver().graphs();
    CudaStream stream = device.poolStream();
    try (CudaStream.Scope _ = stream.use()) {
      graphs.beginCapture(stream.handle());
      assertThatThrownBy(() -> DeviceCopy.copy(device, target, source))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("cannot be captured into a graph");
      DeviceCopy.copy(device, floats, source);
      DeviceCopy.copy(device, target, floats);
      graphs.destroy(graphs.endCapture(stream.handle()));
    }
  }
}
