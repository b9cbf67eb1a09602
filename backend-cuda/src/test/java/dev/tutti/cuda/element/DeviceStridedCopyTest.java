package dev.tutti.cuda.element;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.FakeMachine;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests copies between strided and contiguous tensors, on a fake device. */
class DeviceStridedCopyTest {
  @AutoClose private final FakeMachine machine = new FakeMachine(1);
  private final CudaDevice device = machine.cuda.device(0);

  /** Creates a host tensor with arbitrary bytes. */
  private static Tensor any(Random random, DType dtype, long... shape) {
    Tensor tensor = Tensor.allocate(dtype, shape);
    byte[] bytes = new byte[(int) tensor.byteSize()];
    random.nextBytes(bytes);
    tensor.segment().asByteBuffer().put(bytes);
    return tensor;
  }

  private Tensor dense(Tensor strided) {
    Tensor dense = device.tensors().allocate(strided.dtype(), strided.shape());
    DeviceStridedCopy.enqueue(device.currentStream(), strided, dense.segment().address(), true);
    return device.tensors().toHost(dense);
  }

  private void assertCopied(Tensor host, Tensor view) {
    long[] shape = view.shape();
    Tensor onDevice = device.tensors().copyOf(host);
    long offset = view.segment().address() - host.segment().address();
    Tensor strided =
        Tensor.wrap(
            onDevice.segment().asSlice(offset),
            view.dtype(),
            shape,
            view.strides(),
            onDevice.device());
    assertThat(dense(strided).segment().mismatch(view.copy().segment()))
        .as("first other byte of the copy of %s", strided)
        .isEqualTo(-1);
    Random random = new Random(5);
    Tensor values = any(random, view.dtype(), shape);
    Tensor source = device.tensors().copyOf(values);
    DeviceStridedCopy.enqueue(device.currentStream(), strided, source.segment().address(), false);
    view.copyFrom(values);
    assertThat(device.tensors().toHost(onDevice).segment().mismatch(host.segment()))
        .as("first other byte of what %s is in", strided)
        .isEqualTo(-1);
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void everyTypeIsCopiedToAndFro(DType dtype) {
    Tensor host = any(new Random(1), dtype, 5, 6, 7);
    assertCopied(host, host.transpose(1, 2));
    assertCopied(host, host.transpose(0, 2));
    assertCopied(host, host.narrow(2, 1, 4));
    assertCopied(host, host.narrow(1, 2, 3).narrow(0, 1, 2));
    assertCopied(host, host.select(2, 3));
    assertCopied(host, host.narrow(2, 1, 1));
    assertCopied(host, host.narrow(0, 1, 0));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8})
  void anyNumberOfDimensions(int dimensions) {
    long[] shape = new long[dimensions + 1];
    Arrays.fill(shape, 3);
    Tensor host = any(new Random(dimensions), DType.INT16, shape);
    Tensor view = host;
    for (int d = 0; d < shape.length; d++) {
      view = view.narrow(d, d % 2, 2);
    }
    assertCopied(host, view);
    assertCopied(host, view.transpose(0, dimensions));
  }

  @Test
  void dimensionsWithoutAGapBetweenAreOne() {
    Tensor host = any(new Random(2), DType.FLOAT32, 2, 3, 2, 3, 2, 4);
    machine.fake.clearCalls();
    assertCopied(host, host.narrow(5, 0, 2));
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .as("one launch for two dimensions out of six, to and fro")
        .hasSize(2);
  }
}
