package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.contracts.Sampled;
import dev.tutti.gloo.hier.Stages;
import dev.tutti.store.HashStore;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests every collective with tensors whose sizes are slightly below, at and above those at which
 * shared memory switches to another stage, piece or algorithm, with empty tensors in between.
 */
@Timeout(900)
class BoundarySizesTest {
  /** The number of elements after which the values repeat; it divides no boundary. */
  private static final int PERIOD = 19;

  private static final int[] AROUND = {0, 1, 15, 17, 63};

  /** There are many steps, and each takes some time slices where cores are few and busy. */
  private static final Duration LIMIT = Duration.ofSeconds(800);

  @TempDir Path directory;

  /** All calls of a rank, with a check of the result of each. */
  private static final class Calls {
    final ProcessGroup group;
    final int rank;
    final int size;
    DType dtype = DType.FLOAT32;
    int round;

    Calls(ProcessGroup group) {
      this.group = group;
      rank = group.rank();
      size = group.size();
    }

    private int root() {
      return round % size;
    }

    private int value(int from, int to, int index) {
      return (index + 5 * from + 3 * to + round) % PERIOD;
    }

    private int sum(int to, int index) {
      int sum = 0;
      for (int from = 0; from < size; from++) {
        sum += value(from, to, index);
      }
      return sum;
    }

    private Tensor filled(long count, IntUnaryOperator values) {
      Tensor tensor = Tensor.allocate(dtype, count);
      MemorySegment memory = tensor.segment();
      for (int i = 0; i < Math.min(PERIOD, count); i++) {
        if (dtype == DType.INT8) {
          memory.set(ValueLayout.JAVA_BYTE, i, (byte) values.applyAsInt(i));
        } else {
          memory.setAtIndex(ValueLayout.JAVA_FLOAT, i, values.applyAsInt(i));
        }
      }
      Repeating.fill(tensor, PERIOD);
      return tensor;
    }

    private Tensor input(int to, long count) {
      return filled(count, i -> value(rank, to, i));
    }

    private Tensor output(long count) {
      return filled(count, i -> -1);
    }

    private List<Tensor> inputs(long count) {
      List<Tensor> inputs = new ArrayList<>();
      for (int to = 0; to < size; to++) {
        inputs.add(input(to, count));
      }
      return inputs;
    }

    private List<Tensor> outputs(long count) {
      List<Tensor> outputs = new ArrayList<>();
      for (int from = 0; from < size; from++) {
        outputs.add(output(count));
      }
      return outputs;
    }

    private Tensor joined(List<Tensor> parts, long count) {
      Tensor all = Tensor.allocate(dtype, count * size);
      for (int i = 0; i < size; i++) {
        all.narrow(0, i * count, count).copyFrom(parts.get(i));
      }
      return all;
    }

    private void check(Tensor actual, IntUnaryOperator values) {
      int[] pattern = new int[PERIOD];
      Arrays.setAll(pattern, values);
      MemorySegment memory = actual.segment();
      long count = Repeating.telling(actual, PERIOD);
      for (int i = 0; i < count; i++) {
        float element =
            dtype == DType.INT8
                ? memory.get(ValueLayout.JAVA_BYTE, i)
                : memory.getAtIndex(ValueLayout.JAVA_FLOAT, i);
        if (element != pattern[i % PERIOD]) {
          assertThat(element)
              .as("rank %d, element %d of %s", rank, i, actual.describe())
              .isEqualTo(pattern[i % PERIOD]);
        }
      }
    }

    private void checkFrom(List<Tensor> actual, int to) {
      for (int from = 0; from < size; from++) {
        int sender = from;
        check(actual.get(from), i -> value(sender, to, i));
      }
    }

    private void checkOwn(List<Tensor> inputs) {
      for (int to = 0; to < size; to++) {
        int receiver = to;
        check(inputs.get(to), i -> value(rank, receiver, i));
      }
    }

    private List<Tensor> split(Tensor all, long count) {
      List<Tensor> parts = new ArrayList<>();
      for (int i = 0; i < size; i++) {
        parts.add(all.narrow(0, i * count, count));
      }
      return parts;
    }

    void allReduce(long count) {
      Tensor tensor = input(0, count);
      group.allReduce(tensor);
      check(tensor, i -> sum(0, i));
    }

    void sparse(long count) {
      long places = Math.max(0, count - rank);
      Tensor indices = Tensor.allocate(DType.INT64, 1, places);
      for (long i = 0; i < places; i++) {
        indices.setLong(i, i);
      }
      Tensor values = filled(places, i -> 1);
      Tensor own = Tensor.sparse(indices, values, count + 1);
      Work work = group.allReduce(own, ReduceOp.SUM, CallOptions.DEFAULT);
      work.await();
      Tensor sum = work.result().get(0);
      assertThat(sum.values().numel()).isEqualTo(count);
      for (long i = 0; i < count; i++) {
        double expected = Math.min(size, count - i);
        if (sum.indices().getLong(i) != i || sum.values().getDouble(i) != expected) {
          assertThat(sum.indices().getLong(i)).isEqualTo(i);
          assertThat(sum.values().getDouble(i)).isEqualTo(expected);
        }
      }
    }

    void reduce(long count) {
      Tensor tensor = input(0, count);
      group.reduce(tensor, ReduceOp.SUM, root());
      if (rank == root()) {
        check(tensor, i -> sum(0, i));
      }
    }

    void broadcast(long count) {
      Tensor tensor = rank == root() ? input(0, count) : output(count);
      group.broadcast(tensor, root());
      check(tensor, i -> value(root(), 0, i));
    }

    void allGather(long count) {
      Tensor input = input(0, count);
      List<Tensor> outputs = outputs(count);
      group.allGather(outputs, input);
      checkFrom(outputs, 0);
      check(input, i -> value(rank, 0, i));
    }

    void allGatherInto(long count) {
      Tensor output = output(count * size);
      group.allGatherInto(output, input(0, count));
      checkFrom(split(output, count), 0);
    }

    void gather(long count) {
      List<Tensor> outputs = rank == root() ? outputs(count) : List.of();
      group.gather(outputs, input(0, count), root());
      if (rank == root()) {
        checkFrom(outputs, 0);
      }
    }

    void scatter(long count) {
      List<Tensor> inputs = rank == root() ? inputs(count) : List.of();
      Tensor output = output(count);
      group.scatter(output, inputs, root());
      check(output, i -> value(root(), rank, i));
      if (rank == root()) {
        checkOwn(inputs);
      }
    }

    void reduceScatter(long count) {
      List<Tensor> inputs = inputs(count);
      Tensor output = output(count);
      group.reduceScatter(output, inputs, ReduceOp.SUM);
      check(output, i -> sum(rank, i));
      checkOwn(inputs);
    }

    void reduceScatterInto(long count) {
      Tensor input = joined(inputs(count), count);
      Tensor output = output(count);
      group.reduceScatterInto(output, input, ReduceOp.SUM);
      check(output, i -> sum(rank, i));
      checkOwn(split(input, count));
    }

    void allToAll(long count) {
      List<Tensor> inputs = inputs(count);
      List<Tensor> outputs = outputs(count);
      group.allToAll(outputs, inputs);
      checkFrom(outputs, rank);
      checkOwn(inputs);
    }

    void allToAllSingle(long count) {
      Tensor output = output(count * size);
      group.allToAllSingle(output, joined(inputs(count), count));
      checkFrom(split(output, count), rank);
    }
  }

  private interface Collective {
    void run(Calls calls, long count);
  }

  /** Collectives of one tensor that all ranks share. */
  private static final List<Collective> OF_ONE =
      List.of(Calls::allReduce, Calls::reduce, Calls::broadcast);

  /** Collectives of one tensor per rank; two that are staged alike alternate between types. */
  private static final List<Collective> OF_PARTS =
      List.of(
          Calls::sparse,
          Calls::allGather,
          Calls::allGatherInto,
          Calls::gather,
          Calls::scatter,
          Calls::reduceScatter,
          Calls::reduceScatterInto,
          Calls::allToAll,
          Calls::allToAllSingle);

  private record Step(Collective collective, DType dtype, long count) {}

  private static Set<Long> around(DType dtype, long... boundaries) {
    Set<Long> counts = new TreeSet<>();
    for (long bytes : boundaries) {
      for (int away : AROUND) {
        counts.add(Math.max(0, bytes / dtype.byteSize() - away));
        counts.add(bytes / dtype.byteSize() + away);
      }
    }
    return counts;
  }

  /** Returns what all ranks do, in an order that is the same in every run. */
  private static List<Step> steps(int ranksOfHost, long budget) {
    long stage = Stages.bytes(ranksOfHost, budget);
    long piece = Stages.piece(ranksOfHost, budget);
    long pieces = ranksOfHost * piece;
    long enough = Math.ceilDiv(Stages.PARTS_FROM, pieces) * pieces;
    Random random = new Random(ranksOfHost);
    List<Step> steps = new ArrayList<>();
    List<DType> dtypes = List.of(DType.INT8, DType.FLOAT32);
    for (int d = 0; d < dtypes.size(); d++) {
      DType dtype = dtypes.get(d);
      Set<Long> counts =
          around(dtype, 0, piece / 2, piece, 2 * piece, stage, 2 * stage, Stages.SLOT_BYTES);
      for (long count : counts) {
        for (int i = d; i < OF_PARTS.size(); i += dtypes.size()) {
          steps.add(new Step(OF_PARTS.get(i), dtype, count));
        }
      }
      counts.addAll(around(dtype, pieces, Stages.PARTS_FROM, enough, enough + pieces));
      for (long count : counts) {
        OF_ONE.forEach(each -> steps.add(new Step(each, dtype, count)));
      }
    }
    List<Step> empty = steps.stream().filter(step -> step.count == 0).toList();
    for (int i = steps.size() / 4; i > 0; i--) {
      steps.add(empty.get(random.nextInt(empty.size())));
    }
    Collections.shuffle(steps, random);
    return steps;
  }

  static Stream<Arguments> worlds() {
    return Stream.of(
        Arguments.of("shared memory", new int[] {0, 0}, 64 << 10),
        Arguments.of("shared memory", new int[] {0, 0, 0}, 128 << 10),
        Arguments.of("shared memory", new int[] {0, 0, 0, 0, 0}, 140 << 10),
        Arguments.of("two levels: [0, 1] [2, 3]", new int[] {0, 0, 1, 1}, 64 << 10),
        Arguments.of("two levels: [0, 2, 4] [1, 3, 5]", new int[] {0, 1, 0, 1, 0, 1}, 128 << 10),
        Arguments.of("two levels: [0, 1] [2] [3, 4]", new int[] {0, 0, 1, 2, 2}, 64 << 10));
  }

  @Sampled
  @ParameterizedTest(name = "{0}")
  @MethodSource("worlds")
  void allValuesArrive(String layout, int[] hosts, int budget) throws Exception {
    int most = 0;
    for (int host : hosts) {
      most = Math.max(most, (int) Arrays.stream(hosts).filter(each -> each == host).count());
    }
    List<Step> steps = steps(most, budget);
    HostsProvider provider = new HostsProvider(directory, rank -> hosts[rank]);
    HashStore store = new HashStore();
    String bytes = Integer.toString(budget);
    GlooWorld.inParallel(
        hosts.length,
        LIMIT,
        rank -> {
          GroupOptions options =
              GlooWorld.options(
                      store,
                      rank,
                      hosts.length,
                      GlooWorld.settings(GlooProvider.SHARED_BYTES.name(), bytes))
                  .withProvider(provider);
          try (ProcessGroup group = ProcessGroup.init(options)) {
            Calls calls = new Calls(group);
            for (Step step : steps) {
              calls.round++;
              calls.dtype = step.dtype;
              step.collective.run(calls, step.count);
            }
          }
          return rank;
        });
    assertThat(provider.made()).containsOnly(layout);
  }
}
