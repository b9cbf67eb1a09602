package dev.tutti.examples.gpu;

import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.StreamBlock;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;

/**
 * A program that adds numbers on GPUs (example 06).
 *
 * <p>Each rank is a process with a GPU; ranks share GPUs if there are fewer than ranks. The tensor
 * lies in symmetric memory, so the kernel that adds the numbers reads and writes it in place. The
 * kernel is enqueued while a {@link StreamBlock} holds the stream, and runs once the block is
 * released; the host never waits for the device in between.
 */
public final class GpuSum {
  private static final int COUNT = 1 << 20;

  private GpuSum() {}

  /**
   * Runs one rank of the example.
   *
   * @param args none
   */
  public static void main(String[] args) {
    int localRank = number("LOCAL_RANK", 0);
    Optional<String> reason = Cuda.unusableReason();
    if (reason.isPresent()) {
      if (localRank == 0) {
        System.out.println("this example needs an NVIDIA GPU: " + reason.get());
      }
      return;
    }
    Cuda cuda = Cuda.get();
    CudaDevice device = cuda.device(localRank % cuda.deviceCount());
    GroupOptions options = options(cuda.deviceCount()).withDevice(device.device());
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options);
        SymmetricMemory memory = group.allocateSymmetric((long) COUNT * Float.BYTES)) {
      Tensor numbers = memory.buffer(group.rank(), DType.FLOAT32, 0, COUNT);
      StreamBlock block = StreamBlock.block(device.device(), Duration.ofSeconds(30));
      Tensor host = Tensor.allocate(DType.FLOAT32, COUNT);
      for (int i = 0; i < COUNT; i++) {
        host.setDouble(i, group.rank() + i % 5);
      }
      device.tensors().copyFromHost(numbers, host);
      group.allReduce(numbers, ReduceOp.SUM);
      block.release();
      Tensor sum = device.tensors().toHost(numbers);
      System.out.printf(
          "rank %d of %d on %s (%s): the first sums are %.0f %.0f %.0f, %d of %d are right%n",
          group.rank(),
          group.size(),
          device,
          group.backends().get("cuda"),
          sum.getDouble(0),
          sum.getDouble(1),
          sum.getDouble(2),
          countRight(sum, group.size()),
          COUNT);
      group.barrier();
    }
  }

  private static long countRight(Tensor sum, int ranks) {
    long right = 0;
    for (int i = 0; i < COUNT; i++) {
      right += sum.getDouble(i) == ranks * (ranks - 1) / 2 + ranks * (i % 5) ? 1 : 0;
    }
    return right;
  }

  /** Lets ranks share a GPU if there are more ranks than GPUs. */
  private static GroupOptions options(int devices) {
    boolean shared = number("LOCAL_WORLD_SIZE", 1) > devices;
    return shared
        ? GroupOptions.DEFAULT.withSetting("TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES", "1")
        : GroupOptions.DEFAULT;
  }

  private static int number(String name, int otherwise) {
    Map<String, String> environment = System.getenv();
    return Integer.parseInt(environment.getOrDefault(name, String.valueOf(otherwise)));
  }
}
