package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.DeviceMesh;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.dlpack.Dlpack;
import dev.tutti.fake.RankBody;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.spi.BackendProvider;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Runs the examples of packages {@code dev.tutti} and below. */
class GroupSnippetsTest {
  private static final int SIZE = 4;

  /** Needs what a launcher sets, and so is only compiled. */
  static void joinAsTheEnvironmentSays() {
    // @start region="group"
    try (ProcessGroup group = ProcessGroup.init()) { // as torchrun or tutti run started it
      Tensor tensor = Tensor.of((float) group.rank());
      group.allReduce(tensor);
      System.out.println(tensor.getFloat(0)); // on every rank the sum over all ranks
    }
    // @end
  }

  /** Needs three more ranks on other hosts, and so is only compiled. */
  static void joinAsTheProgramSays() {
    // @start region="options"
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend("gloo")
            .withInitMethod("tcp://10.0.0.1:29500") // rank 0 serves the store there
            .withRank(1)
            .withSize(4)
            .withTimeout(Duration.ofMinutes(2));
    try (ProcessGroup group = ProcessGroup.init(options)) {
      group.barrier();
    }
    // @end
  }

  static ProcessGroup joinOn(BackendProvider provider) {
    // @start region="provider"
    GroupOptions options = GroupOptions.DEFAULT.withProvider(provider);
    // @end
    return ProcessGroup.init(options);
  }

  /** Runs a body on each rank, on a busy machine for longer than by default. */
  private static void run(int size, RankBody body) {
    ThreadedWorld.of(size).withTimeout(Duration.ofMinutes(4)).run(body);
  }

  @Test
  void work() {
    run(
        SIZE,
        group -> {
          Tensor gradient = Tensor.of(1f, 2f);
          // @start region="work"
          Work work = group.allReduce(gradient, ReduceOp.SUM, CallOptions.ASYNC);
          double next = compute(); // in the meantime; the tensor belongs to the operation
          if (!work.await(Duration.ofSeconds(1))) {
            work.await(); // returns when the operation is done, and throws if it failed
          }
          float sum = gradient.getFloat(0);
          // @end
          assertThat(sum).isEqualTo(SIZE);
          assertThat(next).isEqualTo(1);
        });
  }

  private static double compute() {
    return 1;
  }

  @Test
  void store() {
    run(
        SIZE,
        group -> {
          Store store = group.store();
          // @start region="store"
          if (group.rank() == 0) {
            store.set("seed", "42");
          }
          String seed = store.getString("seed"); // waits until rank 0 has set it
          long ticket = store.add("tickets", 1); // a different number on each rank
          store.barrier("ready", group.size(), Duration.ofMinutes(1));
          // @end
          assertThat(seed).isEqualTo("42");
          assertThat(ticket).isBetween(1L, (long) SIZE);
        });
  }

  @Test
  void tensor() {
    // @start region="tensor"
    Tensor matrix = Tensor.allocate(DType.FLOAT32, 2, 3).fill(1);
    Tensor row = matrix.select(0, 1); // views share the memory
    row.copyFrom(new float[] {4, 5, 6});
    float[] values = matrix.toFloatArray(); // 1, 1, 1, 4, 5, 6
    Tensor column = matrix.narrow(1, 2, 1); // of shape [2, 1], with gaps
    // @end
    assertThat(values).containsExactly(1, 1, 1, 4, 5, 6);
    assertThat(column.toFloatArray()).containsExactly(1, 6);
  }

  @Test
  void symmetricMemory() {
    run(
        SIZE,
        group -> {
          // @start region="symmetric"
          Duration timeout = Duration.ofMinutes(1);
          try (SymmetricMemory memory = group.allocateSymmetric(4)) {
            memory.buffer(group.rank(), DType.FLOAT32, 0, 1).fill(group.rank());
            memory.barrier(0, timeout); // all have written
            int next = (group.rank() + 1) % group.size();
            float value = memory.buffer(next, DType.FLOAT32, 0, 1).getFloat(0);
            memory.barrier(0, timeout); // all have read
            assertThat(value).isEqualTo(next);
          }
          // @end
        });
  }

  @Test
  void mesh() {
    run(
        8,
        group -> {
          Tensor gradient = Tensor.of(1f);
          // @start region="mesh"
          DeviceMesh mesh = DeviceMesh.init(group, new int[] {2, 4}, "dp", "tp");
          mesh.group("dp").allReduce(gradient);
          // @end
          assertThat(gradient.getFloat(0)).isEqualTo(2);
          mesh.close();
        });
  }

  @Test
  void dlpack() {
    Tensor tensor = Tensor.of(1f, 2f);
    // @start region="dlpack"
    MemorySegment managed = Dlpack.giveVersioned(tensor); // hand its address to another library
    Tensor taken = Dlpack.takeVersioned(managed); // or take what a library made: the same memory
    // @end
    taken.setFloat(0, 3);
    assertThat(tensor.getFloat(0)).isEqualTo(3);
  }
}
