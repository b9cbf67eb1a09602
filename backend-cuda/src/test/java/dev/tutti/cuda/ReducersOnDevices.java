package dev.tutti.cuda;

import dev.tutti.Tensor;
import dev.tutti.gradients.ReducerOptions;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;

/** A machine of fake devices, whose ranks reduce gradients there, each in a bucket of its own. */
abstract class ReducersOnDevices {
  final FakeMachine machine = new FakeMachine(4);
  final DeviceBuckets buckets = DeviceBuckets.of(machine);

  @AfterEach
  void close() {
    machine.close();
  }

  CudaRanks ranks() {
    return new CudaRanks(machine.cuda).besideHost();
  }

  ReducerOptions options() {
    return ReducerOptions.DEFAULT.withAllocator(buckets).withBucketBytes(1, 1);
  }

  static Tensor filled(CudaDevice device, int numel, float value) {
    float[] values = new float[numel];
    Arrays.fill(values, value);
    return device.tensors().copyOf(Tensor.of(values));
  }
}
