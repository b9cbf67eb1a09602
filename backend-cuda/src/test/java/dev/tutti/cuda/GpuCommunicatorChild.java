package dev.tutti.cuda;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.Tensor;
import dev.tutti.cuda.nccl.Communicator;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclException;
import dev.tutti.cuda.nccl.NcclLibrary;
import dev.tutti.cuda.nccl.NcclTypes;
import dev.tutti.store.file.FileStore;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** One of two ranks of {@link GpuCommunicatorTest}. Arguments: store, rank, scenario. */
final class GpuCommunicatorChild {
  private static final Duration LIMIT = Duration.ofMinutes(3);

  private final Store store;
  private final int rank;
  private final CudaDevice device;
  private final Tensor tensor;
  private final Communicator communicator;

  private GpuCommunicatorChild(Store store, int rank) {
    this.store = store;
    this.rank = rank;
    device = Cuda.get().device(rank);
    tensor = device.tensors().copyOf(Tensor.of(1f));
    device.currentStream().await(LIMIT);
    NcclCalls nccl = NcclLibrary.get(Settings.fromEnvironment()).calls();
    if (rank == 0) {
      store.set("id", nccl.uniqueId());
    }
    communicator =
        Communicator.begin(
            nccl, device.context(), "rank " + rank, store.get("id", LIMIT), 2, rank, true);
    communicator.awaitRanks(soon());
    communicator.block(rank, soon(), () -> {});
  }

  public static void main(String[] args) throws Exception {
    try (Store store = new FileStore(Path.of(args[0]), 2)) {
      GpuCommunicatorChild child = new GpuCommunicatorChild(store, Integer.parseInt(args[1]));
      switch (args[2]) {
        case "sums" -> child.sums();
        case "abort" -> child.abort();
        default -> child.deadline();
      }
      child.communicator.close();
    }
    System.out.println("good");
  }

  private static long soon() {
    return System.nanoTime() + LIMIT.toNanos();
  }

  private void sum(long deadline) {
    device.context().enter();
    long address = tensor.segment().address();
    int type = NcclTypes.type(DType.FLOAT32);
    int op = NcclTypes.op(ReduceOp.Kind.SUM, DType.FLOAT32);
    long stream = device.defaultStream().handle();
    communicator.runGroup(
        "a sum",
        deadline,
        () -> {},
        (calls, handle) -> calls.allReduce(address, address, 1, type, op, handle, stream));
  }

  private void sums() {
    for (int i = 0; i < 3; i++) {
      sum(soon());
    }
    device.defaultStream().await(LIMIT);
    require("sums", Arrays.equals(device.tensors().toHost(tensor).toFloatArray(), new float[] {8}));
  }

  /** Nothing is connected yet, so the call waits on the host for the other rank. */
  private void abort() throws Exception {
    if (rank == 0) {
      try (ExecutorService thread = Executors.newSingleThreadExecutor()) {
        Future<?> call = thread.submit(() -> sum(soon()));
        require("a call that blocks", !ends(call, 1));
        long start = System.nanoTime();
        communicator.abort(new IllegalStateException("enough"));
        require("the end of the call", ends(call, 20));
        require("its time", System.nanoTime() - start < TimeUnit.SECONDS.toNanos(5));
      }
    }
    store.barrier("tried", 2, LIMIT);
    communicator.abort(new IllegalStateException("enough"));
  }

  private static boolean ends(Future<?> call, int seconds) throws InterruptedException {
    try {
      call.get(seconds, TimeUnit.SECONDS);
      throw new AssertionError("the call succeeded");
    } catch (TimeoutException e) {
      return false;
    } catch (ExecutionException e) {
      require("an exception of NCCL, not " + e.getCause(), e.getCause() instanceof NcclException);
      return true;
    }
  }

  private void deadline() {
    if (rank == 0) {
      long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(700);
      try {
        sum(deadline);
        throw new AssertionError("the call succeeded");
      } catch (NcclException e) {
        require(e.getMessage(), e.getMessage().contains("a sum did not complete in time"));
      }
      require("its time", System.nanoTime() - deadline < TimeUnit.SECONDS.toNanos(5));
    }
    store.barrier("tried", 2, LIMIT);
    communicator.abort(new IllegalStateException("enough"));
  }

  private static void require(String what, boolean good) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
