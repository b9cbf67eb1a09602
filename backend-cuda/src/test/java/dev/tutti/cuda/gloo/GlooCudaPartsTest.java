package dev.tutti.cuda.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.PartedCall;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.provider.GlooCudaProvider;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Operation;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that CUDA tensors in Gloo groups go through the host in parts, with bitwise identical
 * results.
 */
class GlooCudaPartsTest {
  private static final int CHUNK = 1024;
  private static final List<DType> OTHER_TYPES =
      List.of(DType.UINT8, DType.BFLOAT16, DType.FLOAT64, DType.COMPLEX128);

  private final FakeMachine machine = new FakeMachine(2);

  @AfterEach
  void nothingIsLeft() {
    for (int d = 0; d < 2; d++) {
      assertThat(Parts.of(machine.cuda.device(d)).pinned().blocksInUse()).isZero();
    }
    machine.close();
  }

  private CudaRanks ranks(String chunkBytes) {
    return new CudaRanks(machine.cuda)
        .on(new GlooProvider(List.of(new GlooCudaProvider(() -> machine.cuda))))
        .with("TUTTI_X_GLOO_CUDA_DIRECT", "0")
        .with("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", chunkBytes);
  }

  /** Compares with host tensors, which the same group transfers whole. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void allSizesHaveTheBitsOfHostTensors(int size) throws Exception {
    long part = (long) CHUNK / size / 64 * 64 / Float.BYTES;
    ranks("1K")
        .run(
            size,
            (group, device) -> {
              for (PartedCall call : PartedCall.values()) {
                for (long numel :
                    new long[] {0, 1, part - 1, part, part + 1, 3 * part, 7 * part + 5}) {
                  compare(group, device, call, DType.FLOAT32, numel);
                }
              }
            });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4})
  void allTypesHaveTheBitsOfHostTensors(int size) throws Exception {
    ranks("1K")
        .run(
            size,
            (group, device) -> {
              for (PartedCall call : PartedCall.values()) {
                for (DType dtype : OTHER_TYPES) {
                  long part = (long) CHUNK / size / 64 * 64 / dtype.byteSize();
                  for (long numel = 2 * part - 1; numel <= 2 * part + 1; numel++) {
                    compare(group, device, call, dtype, numel);
                  }
                }
              }
            });
  }

  private static void compare(
      ProcessGroup group, CudaDevice device, PartedCall call, DType dtype, long numel) {
    for (boolean inPlace : call.canBeInPlace() ? new boolean[] {false, true} : new boolean[1]) {
      Random ofHost = new Random(31 * numel + group.rank());
      Random ofDevice = new Random(31 * numel + group.rank());
      List<Tensor> wanted = call.run(group, n -> any(ofHost, dtype, n), numel, inPlace);
      List<Tensor> tensors =
          call.run(group, n -> device.tensors().copyOf(any(ofDevice, dtype, n)), numel, inPlace);
      assertThat(tensors).hasSameSizeAs(wanted);
      for (int i = 0; i < tensors.size(); i++) {
        Tensor read = device.tensors().toHost(tensors.get(i));
        assertThat(read.segment().mismatch(wanted.get(i).copy().segment()))
            .as(
                "first other byte of tensor %d of %s of %d %s, in place: %s, rank %d of %d",
                i, call, numel, dtype, inPlace, group.rank(), group.size())
            .isEqualTo(-1);
      }
    }
  }

  private static Tensor any(Random random, DType dtype, long numel) {
    Tensor tensor = Tensor.allocate(dtype, numel);
    Tensor reals = dtype.isComplex() ? tensor.viewAsReal().flatten() : tensor;
    for (long i = 0; i < reals.numel(); i++) {
      if (reals.dtype().isFloatingPoint()) {
        reals.setDouble(i, random.nextGaussian());
      } else {
        reals.setLong(i, random.nextLong(100));
      }
    }
    return tensor;
  }

  @Test
  void theRowsOfAllRanksTogetherAreOneChunk() throws Exception {
    ranks("1K")
        .run(
            2,
            (group, device) -> {
              Tensor own = device.tensors().allocate(DType.UINT8, 2048);
              Tensor all = device.tensors().allocate(DType.UINT8, 4096);
              group.allGatherInto(all, own);
              group.reduceScatterInto(own, all, ReduceOp.SUM);
            });
    assertThat(machine.fake.calls("cuMemcpyAsync"))
        .filteredOn(call -> call.contains(" 512 "))
        .as("copies of half a chunk, to the host and back")
        .hasSize(2 * (4 + 8 + 8 + 4));
  }

  @Test
  void smallTensorsShareParts() throws Exception {
    ranks("1K")
        .run(
            2,
            (group, device) -> {
              List<Tensor> tensors = new ArrayList<>();
              for (int i = 0; i < 100; i++) {
                tensors.add(device.tensors().copyOf(Tensor.of(1f, i, group.rank())));
              }
              group.allReduceCoalesced(tensors, ReduceOp.SUM, CallOptions.DEFAULT);
              for (int i = 0; i < 100; i++) {
                assertThat(device.tensors().toHost(tensors.get(i)).toFloatArray())
                    .containsExactly(2, 2 * i, 1);
              }
            });
    assertThat(machine.fake.calls("cuMemcpyAsync"))
        .filteredOn(call -> call.contains(" 4 ") || call.contains(" 8 "))
        .as("copies of both sides of the end of a part, to the host and back")
        .hasSize(2 * 2 * 2);
  }

  @Test
  void largeTensorsTakeLittlePageLockedMemory() throws Exception {
    ranks("64K")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().allocate(DType.UINT8, 4 << 20);
              Tensor own = device.tensors().allocate(DType.UINT8, 2 << 20);
              long before = Parts.of(device).pinned().allocatedBytes();
              group.allGatherInto(tensor, own);
              group.reduceScatterInto(own, tensor, ReduceOp.MAX);
              group.allReduce(tensor, ReduceOp.MAX);
              assertThat(Parts.of(device).pinned().allocatedBytes() - before)
                  .isBetween(64L << 10, 12 * (64L << 10));
            });
  }

  /** Counts the host calls for each operation of a group with PyTorch ranks. */
  @Test
  void eachIsOneOperationOfTheHostWhereNotAllRanksAreOfTutti() throws Exception {
    List<String> calls = new ArrayList<>();
    Backend host =
        proxy(
            Backend.class,
            (_, method, _) -> {
              calls.add(method.getName());
              return null;
            });
    Operation operation =
        proxy(
            Operation.class,
            (_, method, _) -> {
              return method.getName().equals("deadlineNanos")
                  ? (Object) (System.nanoTime() + Until.LONG.toNanos())
                  : null;
            });
    CudaDevice device = machine.cuda.device(0);
    try (CudaStream.Scope _ = device.poolStream().use();
        Backend backend = new GlooCudaBackend(machine.cuda, mixed(host), null)) {
      Tensor one = device.tensors().allocate(DType.UINT8, 1 << 20);
      Tensor two = device.tensors().allocate(DType.UINT8, 2 << 20);
      List<Tensor> ones = List.of(one, device.tensors().allocate(DType.UINT8, 1 << 20));
      List<Tensor> twos = List.of(two, device.tensors().allocate(DType.UINT8, 2 << 20));
      backend.allReduce(operation, one, ReduceOp.SUM);
      backend.allReduceCoalesced(operation, ones, ReduceOp.SUM);
      backend.reduce(operation, one, ReduceOp.SUM, 0);
      backend.broadcast(operation, one, 1);
      backend.allGather(operation, ones, one);
      backend.allGatherInto(operation, two, one);
      backend.allGatherIntoCoalesced(operation, twos, ones);
      backend.gather(operation, ones, one, 0);
      backend.scatter(operation, one, ones, 0);
      backend.reduceScatter(operation, one, ones, ReduceOp.SUM);
      backend.reduceScatterInto(operation, one, two, ReduceOp.SUM);
      backend.reduceScatterIntoCoalesced(operation, ones, twos, ReduceOp.SUM);
    }
    assertThat(calls)
        .containsExactly(
            "allReduce",
            "allReduce",
            "reduce",
            "broadcast",
            "allGatherInto",
            "allGatherInto",
            "allGatherInto",
            "gather",
            "scatter",
            "reduceScatter",
            "reduceScatterInto",
            "reduceScatterIntoCoalesced");
  }

  private static GlooGroup mixed(Backend host) {
    BackendContext context =
        BackendContext.builder("0", 0, 2, new HashStore(), Duration.ofSeconds(5))
            .device("cpu", Device.cuda(0))
            .settings(Settings.ofEnvironment(Map.of("TUTTI_X_GLOO_CUDA_CHUNK_BYTES", "1K")))
            .build();
    return new TestGlooGroup(context, host, false, false);
  }

  private static <T> T proxy(Class<T> type, InvocationHandler handler) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
  }
}
