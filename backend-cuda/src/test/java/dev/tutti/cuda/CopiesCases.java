package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.cuda.provider.CudaSession;
import dev.tutti.spi.DeviceSession.Recording;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Cases of all-reduces by copy engines, for fake devices and real ones. */
final class CopiesCases {
  private static final CallOptions COPIES = CallOptions.DEFAULT.withAlgorithm("copies");
  private static final CallOptions CHUNKS = CallOptions.DEFAULT.withAlgorithm("chunks");

  private CopiesCases() {}

  private static Tensor random(DType type, long numel, long seed) {
    Random random = new Random(seed);
    Tensor host = Tensor.allocate(type, numel);
    for (long i = 0; i < numel; i++) {
      host.setDouble(i, random.nextInt(-1000, 1001) / 8.0);
    }
    return host;
  }

  /**
   * Compares what copies compute, bit for bit, with what kernels compute, in memory of all kinds.
   *
   * @param ranks the ranks to run
   * @param size the number of ranks
   * @param sizes numbers of elements
   */
  static void sameAsByKernels(CudaRanks ranks, int size, long... sizes) throws Exception {
    ranks.run(size, (group, device) -> sameAsByKernels(group, device, sizes));
  }

  /** Compares the same as a rank. */
  static void sameAsByKernels(ProcessGroup group, CudaDevice device, long... sizes) {
    for (DType type : List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)) {
      for (long numel : sizes) {
        try (SymmetricMemory memory =
            group.allocateSymmetric(numel * type.byteSize() + 64, "cuda")) {
          for (ReduceOp op : List.of(ReduceOp.SUM, ReduceOp.AVG)) {
            Tensor values = random(type, numel, 10 * numel + group.rank());
            Tensor expected = device.tensors().copyOf(values);
            group.allReduce(expected, op, CHUNKS).await();
            Tensor shared = memory.buffer(group.rank(), type, 0, numel);
            Tensor odd = memory.buffer(group.rank(), type, type.byteSize(), numel);
            for (Tensor tensor : List.of(device.tensors().copyOf(values), shared, odd)) {
              device.tensors().copyFromHost(tensor, values);
              group.allReduce(tensor, op, COPIES).await();
              assertThat(device.tensors().toHost(tensor).toDoubleArray())
                  .as("%s of %s %s", op, numel, type)
                  .isEqualTo(device.tensors().toHost(expected).toDoubleArray());
            }
          }
        }
      }
    }
  }

  /** Replays a captured reduction in symmetric memory, and reduces eagerly between replays. */
  static void replaysReduceWhatIsThereThen(CudaRanks ranks) throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          long numel = 3000;
          try (SymmetricMemory memory = group.allocateSymmetric(4 * numel, "cuda")) {
            Tensor tensor = memory.buffer(group.rank(), DType.FLOAT32, 0, numel);
            group.allReduce(tensor, ReduceOp.SUM, COPIES).await();
            try (CudaSession session = new CudaSession(device)) {
              List<Float> sums = new ArrayList<>();
              try (Recording graph =
                  session.record(() -> group.allReduce(tensor, ReduceOp.SUM, COPIES))) {
                for (int i = 0; i < 4; i++) {
                  fill(device, tensor, 10 * i + group.rank());
                  graph.replay();
                  sums.add(last(device, tensor));
                  fill(device, tensor, i);
                  group.allReduce(tensor, ReduceOp.SUM, COPIES).await();
                  sums.add(last(device, tensor));
                }
                group.store().barrier("replayed", 2, Until.LONG);
              }
              assertThat(sums).containsExactly(1f, 0f, 21f, 2f, 41f, 4f, 61f, 6f);
            }
            group.store().barrier("done", 2, Until.LONG);
          }
        });
  }

  private static void fill(CudaDevice device, Tensor tensor, float value) {
    Tensor host = Tensor.allocate(DType.FLOAT32, tensor.numel());
    host.fill(value);
    device.tensors().copyFromHost(tensor, host);
  }

  private static float last(CudaDevice device, Tensor tensor) {
    return device.tensors().toHost(tensor).getFloat(tensor.numel() - 1);
  }

  /**
   * Lets a rank not come: the other's reductions end at the deadline, and so does what its stream
   * waits for, whether or not it closes the group.
   */
  static void aMissingRankEndsTheWaits(CudaRanks ranks) throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          Tensor tensor = device.tensors().allocate(DType.FLOAT32, 30_000);
          group.allReduce(tensor, ReduceOp.SUM, COPIES).await();
          device.currentStream().await(Until.LONG);
          group.barrier();
          if (group.rank() == 0) {
            group.setTimeout(Duration.ofMillis(500));
            assertThatThrownBy(() -> timesOut(group, tensor))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("the operation did not complete in time");
            device.currentStream().await(Until.LONG);
          }
          Until.holds("the failure", () -> group.failure().isPresent());
        });
  }

  private static void timesOut(ProcessGroup group, Tensor tensor) {
    CallOptions options = COPIES.withAsync();
    group.allReduce(tensor, ReduceOp.SUM, options);
    group.allReduce(tensor, ReduceOp.SUM, options).await();
  }

  /** Lets one rank replay a captured reduction that the other does not: its group fails. */
  static void aReplayThatAPeerDoesNotMakeFails(CudaRanks ranks) throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          Tensor tensor = device.tensors().allocate(DType.FLOAT32, 3000);
          group.allReduce(tensor, ReduceOp.SUM, COPIES).await();
          CallOptions soon = COPIES.withTimeout(Duration.ofMillis(500));
          try (CudaSession session = new CudaSession(device);
              Recording graph = session.record(() -> group.allReduce(tensor, ReduceOp.SUM, soon))) {
            graph.replay();
            device.currentStream().await(Until.LONG);
            group.store().barrier("replayed", 2, Until.LONG);
            if (group.rank() == 0) {
              graph.replay();
            }
            Until.holds("the failure", () -> group.failure().isPresent());
            assertThat(group.failure().orElseThrow())
                .hasMessageContaining("rank 0 waited for copies of its peers");
            device.currentStream().await(Until.LONG);
          }
        });
  }

  /** Lets the stream of each rank wait in turn for a late one; the reductions are right. */
  static void aLateRankIsWaitedFor(CudaRanks ranks) throws Exception {
    ranks.run(
        2,
        (group, device) -> {
          Tensor tensor = device.tensors().allocate(DType.FLOAT32, 30_000);
          // The ranks wait for each other on the host when they first allocate memory for copies.
          group.allReduce(tensor, ReduceOp.SUM, COPIES);
          for (int i = 0; i < 20; i++) {
            fill(device, tensor, i + group.rank());
            boolean isLate = i % 2 == group.rank();
            if (isLate) {
              group.store().barrier("issued " + i, 2, Until.LONG);
            }
            group.allReduce(tensor, ReduceOp.SUM, COPIES);
            if (!isLate) {
              group.store().barrier("issued " + i, 2, Until.LONG);
            }
            assertThat(last(device, tensor)).isEqualTo(2 * i + 1);
          }
        });
  }
}
