package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cuda.access.Multiprocessors;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.DeviceAttribute;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Groups of the same ranks, each with a stream and a tensor on this rank. */
public final class ManyGroups implements AutoCloseable {
  private final CudaDevice device;
  private final List<ProcessGroup> groups = new ArrayList<>();
  private final List<CudaStream> streams = new ArrayList<>();
  private final List<Tensor> tensors = new ArrayList<>();

  /**
   * Creates the groups, on all ranks.
   *
   * @param group the first of them
   * @param length the number of elements of a tensor
   */
  public ManyGroups(int count, ProcessGroup group, CudaDevice device, int length) {
    this.device = device;
    for (int i = 0; i < count; i++) {
      groups.add(i == 0 ? group : group.split(0, group.rank()).orElseThrow());
      streams.add(device.poolStream());
      tensors.add(device.tensors().allocate(DType.FLOAT32, length));
    }
  }

  /** Sums the tensor of a group in its stream. */
  public void allReduce(int i) {
    allReduce(i, streams.get(i));
  }

  /** Sums the tensor of a group in a stream. */
  public void allReduce(int i, CudaStream stream) {
    try (CudaStream.Scope _ = stream.use()) {
      groups.get(i).allReduce(tensors.get(i), ReduceOp.SUM);
    }
  }

  /** Fills the tensor of group i with a value plus i. */
  public void fill(float value) {
    for (int i = 0; i < tensors.size(); i++) {
      float[] values = new float[(int) tensors.get(i).numel()];
      Arrays.fill(values, value + i);
      try (CudaStream.Scope _ = streams.get(i).use()) {
        device.tensors().copyFromHost(tensors.get(i), Tensor.of(values));
      }
    }
  }

  /** Returns the tensor of a group once its stream is done. */
  public float[] result(int i) {
    streams.get(i).await(Until.LONG);
    return device.tensors().toHost(tensors.get(i)).toFloatArray();
  }

  @Override
  public void close() {
    groups.subList(1, groups.size()).forEach(ProcessGroup::close);
  }

  /** Sums the tensors of three groups in three streams, in another order on each rank. */
  public static void inCyclicOrder(CudaRanks ranks, int size, int length, int rounds)
      throws Exception {
    ranks.run(
        size,
        (group, device) -> {
          try (ManyGroups groups = new ManyGroups(3, group, device, length)) {
            for (int round = 0; round < rounds; round++) {
              groups.fill(group.rank());
              for (int i = 0; i < 3; i++) {
                groups.allReduce((group.rank() + i) % 3);
              }
              for (int i = 0; i < 3; i++) {
                float sum = size * (size - 1) / 2f + size * i;
                assertThat(groups.result(i)).hasSize(length).containsOnly(sum);
              }
            }
          }
        });
  }

  /** Runs code while so many channels are counted that a launch on a device has one block. */
  public static void withOneBlock(CudaDevice device, Runnable code) {
    Multiprocessors ledger = Parts.of(device).multiprocessors();
    int all =
        device
            .context()
            .driver()
            .devices()
            .attribute(device.index(), DeviceAttribute.MULTIPROCESSORS);
    for (int i = 0; i < all; i++) {
      ledger.enter();
    }
    try {
      code.run();
    } finally {
      for (int i = 0; i < all; i++) {
        ledger.leave();
      }
    }
  }
}
