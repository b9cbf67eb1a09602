package dev.tutti.cuda;

import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.P2pOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.Arrays;

/**
 * Is a rank of a job whose other ranks may be PyTorch's: {@code
 * benchmarks/pytorch-interop/gpu_peer.py} is the same in Python. The environment says which rank;
 * the first argument names the backend; a second one asks for messages, which PyTorch's ranks do
 * not share.
 */
final class GpuPeer {
  private static final int COUNT = 1_000_003;

  private GpuPeer() {}

  public static void main(String[] args) {
    int local = Integer.parseInt(System.getenv("LOCAL_RANK"));
    CudaDevice device = Cuda.get().device(local);
    GroupOptions options =
        GroupOptions.defaults().withBackend(args[0]).withDevice(Device.cuda(local));
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      int rank = group.rank();
      int size = group.size();
      Tensor few = device.tensors().copyOf(Tensor.of(rank + 1f, 10f * (rank + 1)));
      group.allReduce(few);
      float sum = size * (size + 1) / 2f;
      float[] sums = device.tensors().toHost(few).toFloatArray();
      require("sum", Arrays.equals(sums, new float[] {sum, 10 * sum}));

      int[] many = new int[COUNT];
      Arrays.setAll(many, i -> i % 1000 * (rank + 1));
      Tensor large = device.tensors().copyOf(Tensor.of(many));
      group.allReduce(large, ReduceOp.SUM);
      int[] total = device.tensors().toHost(large).toIntArray();
      for (int i = 0; i < COUNT; i++) {
        require("sum of element " + i, total[i] == i % 1000 * (int) sum);
      }

      Tensor root = device.tensors().copyOf(Tensor.of(rank == 1 ? 7L : 0L));
      group.broadcast(root, 1);
      require("broadcast", device.tensors().toHost(root).toLongArray()[0] == 7);

      Tensor all = device.tensors().copyOf(Tensor.of(new float[size]));
      group.allGatherInto(all, device.tensors().copyOf(Tensor.of((float) rank)));
      float[] ranks = device.tensors().toHost(all).toFloatArray();
      for (int r = 0; r < size; r++) {
        require("all-gather of rank " + r, ranks[r] == r);
      }
      group.barrier();
      if (args.length > 1) {
        messages(group, device);
      }
      System.out.println("Java rank " + rank + " of " + size + ": sums exact " + sums[0]);
    }
  }

  /** Sends around the ring, out of order by tags; among ranks of Tutti. */
  private static void messages(ProcessGroup group, CudaDevice device) {
    int next = (group.rank() + 1) % group.size();
    int previous = (group.rank() + group.size() - 1) % group.size();
    int[] many = new int[COUNT];
    Arrays.fill(many, group.rank());
    P2pOptions seven = P2pOptions.DEFAULT.withTag(7).withAsync();
    P2pOptions eight = P2pOptions.DEFAULT.withTag(8).withAsync();
    Work first = group.send(device.tensors().copyOf(Tensor.of(many)), next, seven);
    Work second = group.send(device.tensors().copyOf(Tensor.of(group.rank())), next, eight);
    Tensor large = device.tensors().copyOf(Tensor.of(new int[COUNT]));
    Tensor small = device.tensors().copyOf(Tensor.of(-1));
    group.recv(small, previous, eight).await();
    group.recv(large, previous, seven).await();
    first.await();
    second.await();
    require("small message", device.tensors().toHost(small).toIntArray()[0] == previous);
    for (int element : device.tensors().toHost(large).toIntArray()) {
      require("large message", element == previous);
    }
    group.barrier();
    System.out.println("Java rank " + group.rank() + ": messages exact");
  }

  private static void require(String what, boolean good) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
