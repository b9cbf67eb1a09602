package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.Codec;
import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.HashStore;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class FakeBackendTest {
  private static final int RANK = 2;
  private static final int SIZE = 4;

  private interface Body {
    void run(ProcessGroup group) throws Exception;
  }

  private static void inGroup(BackendProvider provider, Body body) throws Exception {
    inGroup(GroupOptions.DEFAULT.withProvider(provider), body);
  }

  private static void inGroup(GroupOptions options, Body body) throws Exception {
    try (HashStore store = new HashStore();
        ProcessGroup group =
            ProcessGroup.init(
                options
                    .withStore(store)
                    .withRank(RANK)
                    .withSize(SIZE)
                    .withTimeout(Worlds.PATIENCE))) {
      body.run(group);
    }
  }

  private static List<Tensor> four(Tensor... tensors) {
    return List.of(tensors);
  }

  private static double[] doubles(Tensor tensor) {
    return tensor.toDoubleArray();
  }

  @Test
  void plainReductionsAndMessagesLeaveTensorsAsTheyAre() throws Exception {
    inGroup(
        new FakeProvider(),
        group -> {
          Tensor matrix = Tensor.of(3f, 0f, -1f, 0f).view(2, 2);
          for (Tensor tensor :
              List.of(
                  Tensor.of(3f, -1f),
                  Tensor.wrap(new float[] {3, -1}),
                  matrix.transpose(0, 1).select(0, 0))) {
            for (ReduceOp op : Samples.opsOn(DType.FLOAT32, RANK)) {
              group.allReduce(tensor, op);
              group.reduce(tensor, op, RANK);
            }
            group.allReduceCoalesced(List.of(tensor), ReduceOp.SUM, CallOptions.DEFAULT);
            group.broadcast(tensor, 0);
            group.send(tensor, 1);
            group.recv(tensor, 3);
            assertThat(group.recvAnySource(tensor)).isEqualTo(3);
            group.barrier();
            group.monitoredBarrier(Worlds.PATIENCE, MissingRanks.ALL);
            assertThat(doubles(tensor)).containsExactly(3, -1);
          }
        });
  }

  @Test
  void bothModesGatherAndScatterTheirOwnData() throws Exception {
    for (boolean uniform : new boolean[] {false, true}) {
      inGroup(
          new FakeProvider().withUniformRanks(uniform),
          group -> {
            Tensor input = Tensor.of(5f, 6f);
            Tensor into = Tensor.allocate(DType.FLOAT32, SIZE, 2);
            group.allGatherInto(into, input);
            assertThat(doubles(into)).containsExactly(5, 6, 5, 6, 5, 6, 5, 6);

            List<Tensor> outputs = new ArrayList<>();
            for (int i = 0; i < SIZE; i++) {
              outputs.add(Tensor.allocate(DType.FLOAT32, 2));
            }
            group.allGather(outputs, input);
            assertThat(outputs).allSatisfy(t -> assertThat(doubles(t)).containsExactly(5, 6));
            outputs.forEach(tensor -> tensor.fill(0));
            group.gather(outputs, input, RANK);
            assertThat(outputs).allSatisfy(t -> assertThat(doubles(t)).containsExactly(5, 6));

            Tensor output = Tensor.of(9f);
            group.scatter(output, List.of(), 0);
            assertThat(doubles(output)).containsExactly(9);
            group.scatter(
                output, four(Tensor.of(1f), Tensor.of(2f), Tensor.of(3f), Tensor.of(4f)), RANK);
            assertThat(doubles(output)).containsExactly(3);
          });
    }
  }

  @Test
  void plainReduceScatterTakesTheOwnPart() throws Exception {
    inGroup(
        new FakeProvider(),
        group -> {
          Tensor output = Tensor.allocate(DType.FLOAT32, 2);
          group.reduceScatterInto(output, Tensor.of(0f, 1, 2, 3, 4, 5, 6, 7), ReduceOp.SUM);
          assertThat(doubles(output)).containsExactly(4, 5);
          Tensor one = Tensor.of(0f);
          group.reduceScatter(
              one,
              four(Tensor.of(1f), Tensor.of(2f), Tensor.of(3f), Tensor.of(4f)),
              ReduceOp.PRODUCT);
          assertThat(doubles(one)).containsExactly(3);
        });
  }

  @Test
  void plainExchangesCopyWhatLiesThere() throws Exception {
    inGroup(
        new FakeProvider(),
        group -> {
          Tensor output = Tensor.allocate(DType.FLOAT32, 6);
          output.fill(7);
          group.allToAllSingle(
              output,
              Tensor.of(1f, 2, 3, 4),
              new long[] {1, 2, 1, 2},
              new long[] {1, 1, 1, 1},
              CallOptions.DEFAULT);
          assertThat(doubles(output)).containsExactly(1, 2, 3, 4, 0, 0);
          List<Tensor> outputs = four(Tensor.of(0f), Tensor.of(0f), Tensor.of(0f), Tensor.of(0f));
          group.allToAll(outputs, four(Tensor.of(1f), Tensor.of(2f), Tensor.of(3f), Tensor.of(4f)));
          assertThat(outputs).extracting(t -> t.getDouble(0)).containsExactly(1.0, 2.0, 3.0, 4.0);
        });
  }

  @Test
  void uniformReductionsAreThoseOfEqualRanks() throws Exception {
    inGroup(
        new FakeProvider().withUniformRanks(true),
        group -> {
          for (DType dtype : DType.values()) {
            for (ReduceOp op : Samples.opsOn(dtype, RANK)) {
              Tensor tensor = Tensor.allocate(dtype, 2);
              tensor.viewAsReal().fill(dtype == DType.BOOL ? 1 : 3);
              double one = dtype == DType.BOOL ? 1 : 3;
              group.allReduce(tensor, op);
              double expected =
                  switch (op.kind()) {
                    case SUM -> dtype == DType.BOOL ? 1 : 12;
                    case PRODUCT -> Math.pow(one, SIZE);
                    case PREMUL_SUM -> 3 * Samples.factor(RANK) * SIZE;
                    case BXOR -> 0;
                    case AVG, MIN, MAX, BAND, BOR -> one;
                  };
              assertThat(doubles(tensor.viewAsReal()))
                  .as("%s of %s", op, dtype)
                  .containsOnly(expected);
            }
          }
        });
  }

  @Test
  void uniformReduceWritesOnTheRootOnly() throws Exception {
    inGroup(
        new FakeProvider().withUniformRanks(true),
        group -> {
          Tensor tensor = Tensor.of(3f);
          group.reduce(tensor, ReduceOp.SUM, 0);
          assertThat(doubles(tensor)).containsExactly(3);
          group.reduce(tensor, ReduceOp.SUM, RANK);
          assertThat(doubles(tensor)).containsExactly(12);
        });
  }

  @Test
  void uniformScattersReduceAndExchangesRepeatTheOwnPart() throws Exception {
    inGroup(
        new FakeProvider().withUniformRanks(true),
        group -> {
          Tensor part = Tensor.allocate(DType.INT32, 1);
          group.reduceScatterInto(part, Tensor.of(1, 2, 3, 4), ReduceOp.SUM);
          assertThat(doubles(part)).containsExactly(12);
          Tensor output = Tensor.allocate(DType.FLOAT32, 6);
          group.allToAllSingle(
              output,
              Tensor.of(1f, 2, 3, 4, 5),
              new long[] {1, 3, 2, 0},
              new long[] {1, 1, 2, 1},
              CallOptions.DEFAULT);
          assertThat(doubles(output)).containsExactly(3, 3, 4, 3, 3, 4);
          List<Tensor> outputs = four(Tensor.of(0f), Tensor.of(0f), Tensor.of(0f), Tensor.of(0f));
          group.allToAll(outputs, four(Tensor.of(1f), Tensor.of(2f), Tensor.of(3f), Tensor.of(4f)));
          assertThat(outputs).extracting(t -> t.getDouble(0)).containsOnly(3.0);
        });
  }

  @Test
  void sparseSumsAreCoalesced() throws Exception {
    Tensor indices = Tensor.of(4L, 1, 4).view(1, 3);
    Tensor sparse = Tensor.sparse(indices, Tensor.of(1f, 2, 3), 6);
    for (boolean uniform : new boolean[] {false, true}) {
      inGroup(
          new FakeProvider().withUniformRanks(uniform),
          group -> {
            Tensor sum = group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT).result().get(0);
            assertThat(sum.indices().toLongArray()).containsExactly(1, 4);
            double times = uniform ? SIZE : 1;
            assertThat(doubles(sum.values())).containsExactly(2 * times, 4 * times);
          });
    }
  }

  @Test
  void collectivesFailOnRequestAndMessagesDoNot() throws Exception {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_FAKE_ERROR_ON_COLLECTIVE", "1"));
    GroupOptions bySetting = GroupOptions.DEFAULT.withBackend("fake").withSettings(settings);
    GroupOptions byProgram =
        GroupOptions.DEFAULT.withProvider(new FakeProvider().withErrorOnCollective(true));
    for (GroupOptions options : List.of(bySetting, byProgram)) {
      inGroup(
          options,
          group -> {
            group.send(Tensor.of(1f), 0);
            assertThatThrownBy(group::barrier)
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining(
                    "fails as TUTTI_FAKE_ERROR_ON_COLLECTIVE or the program asked");
          });
    }
    inGroup(
        GroupOptions.DEFAULT
            .withProvider(new FakeProvider().withErrorOnCollective(false))
            .withSettings(settings),
        ProcessGroup::barrier);
  }

  @Test
  void settingsChooseUniformRanks() throws Exception {
    Settings settings = Settings.ofEnvironment(Map.of("TUTTI_FAKE_UNIFORM_RANKS", "1"));
    inGroup(
        GroupOptions.DEFAULT.withBackend("fake").withSettings(settings),
        group -> {
          Tensor tensor = Tensor.of(2);
          group.allReduce(tensor);
          assertThat(tensor.toLongArray()).containsExactly(8);
        });
  }

  /** A segment at address 64 would crash any code that read it. */
  @Test
  void tensorsOnDevicesAreNotTouched() throws Exception {
    Tensor device = onDevice(64, 4);
    inGroup(
        new FakeProvider().withUniformRanks(true),
        group -> {
          group.allReduce(device);
          group.broadcast(device, 0);
          Tensor part = onDevice(128, 1);
          group.allGatherInto(device, part);
          group.reduceScatterInto(part, device, ReduceOp.SUM);
          group.allToAllSingle(device, onDevice(192, 4));
        });
  }

  private static Tensor onDevice(long address, long numel) {
    return Tensor.wrap(
        MemorySegment.ofAddress(address).reinterpret(4 * numel),
        DType.FLOAT32,
        new long[] {numel},
        new long[] {1},
        Device.cuda(0));
  }

  @Test
  void objectsGoToAllRanks() throws Exception {
    inGroup(
        new FakeProvider(),
        group ->
            assertThat(group.allGatherObject("x", Codec.STRING))
                .containsExactly("x", "x", "x", "x"));
  }

  @Test
  void groupsSplitAsIfAllRanksDidTheSame() throws Exception {
    inGroup(
        new FakeProvider().withUniformRanks(true),
        group -> {
          try (ProcessGroup half = group.subgroup(List.of(1, RANK)).orElseThrow()) {
            assertThat(half.rank()).isEqualTo(1);
            Tensor tensor = Tensor.of(5);
            half.allReduce(tensor);
            assertThat(tensor.getLong(0)).isEqualTo(10);
          }
          assertThat(group.split(-1, 0)).isEmpty();
          try (ProcessGroup all = group.split(3, 7).orElseThrow()) {
            assertThat(all.rank()).isEqualTo(RANK);
            assertThat(all.size()).isEqualTo(SIZE);
          }
        });
  }

  @Test
  void anyRankOfAnyWorldStartsAlone() {
    try (HashStore store = new HashStore();
        ProcessGroup group =
            ProcessGroup.init(
                GroupOptions.DEFAULT
                    .withBackend("fake")
                    .withStore(store)
                    .withRank(99_999)
                    .withSize(100_000))) {
      Tensor tensor = Tensor.of(1f);
      group.allReduce(tensor);
      assertThat(group.size()).isEqualTo(100_000);
    }
  }
}
