package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.cpu.memory.SharedHeap;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Compares collectives on tensors that all ranks can access with those on other tensors. */
@Timeout(300)
class DirectCollectivesTest {
  @BeforeAll
  static void isThere() {
    assumeThat(SharedHeap.ofProcess()).as("this system gives out such memory").isPresent();
  }

  private static final long CHUNK = 2 << 20;
  private static final long PERIOD = 10_007;
  private static final List<ReduceOp> OPERATORS =
      List.of(ReduceOp.SUM, ReduceOp.AVG, ReduceOp.premulSum(0.3), ReduceOp.MAX);

  private static Tensor elsewhere(DType dtype, long count) {
    return Tensor.wrap(Arena.ofAuto().allocate(count * dtype.byteSize(), 64), dtype, count);
  }

  /**
   * Returns a tensor in the shared heap if it is large; waits for the memory of other tests and
   * collects it. Memory stays taken while a rank lends any, so all ranks must have theirs before a
   * collective.
   */
  private static Tensor seen(DType dtype, long count) {
    Tensor tensor = Tensor.allocate(dtype, count);
    boolean isLarge = tensor.byteSize() >= SharedHeap.LEAST_BYTES;
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
    while (isLarge && !SharedHeap.has(tensor.segment())) {
      assertThat(System.nanoTime() - deadline).as("wait for shared heap").isNegative();
      System.gc();
      LockSupport.parkNanos(10_000_000); // the collector's threads give the memory back
      tensor = Tensor.allocate(dtype, count);
    }
    assertThat(SharedHeap.has(tensor.segment())).isEqualTo(isLarge);
    return tensor;
  }

  /** Fills a tensor with numbers that differ for each rank and seed, and repeat after a prime. */
  private static Tensor filled(Tensor tensor, int rank, long seed) {
    Random random = new Random(seed * 31 + rank);
    for (long i = 0; i < Math.min(PERIOD, tensor.numel()); i++) {
      int value = random.nextInt(2000) - 1000;
      if (tensor.dtype().isFloatingPoint()) {
        tensor.setDouble(i, value / 3.0);
      } else {
        tensor.setLong(i, value);
      }
    }
    Repeating.fill(tensor, PERIOD);
    return tensor;
  }

  private static void assertSame(Tensor actual, Tensor expected, String what) {
    MemorySegment bytes = actual.segment().asSlice(0, actual.byteSize());
    assertThat(bytes.mismatch(expected.segment())).as(what).isEqualTo(-1);
  }

  private static long[] counts(DType dtype) {
    long unit = dtype.byteSize();
    return new long[] {
      SharedHeap.LEAST_BYTES / unit - 1,
      SharedHeap.LEAST_BYTES / unit,
      100_003 / unit,
      CHUNK / unit,
      CHUNK / unit + 1,
      2 * CHUNK / unit + 77
    };
  }

  @ParameterizedTest
  @CsvSource({"2, FLOAT32", "2, BFLOAT16", "3, FLOAT32", "4, INT64", "3, FLOAT64"})
  void allReduceGivesTheSameBits(int ranks, DType dtype) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          int round = 0;
          for (long count : counts(dtype)) {
            ReduceOp op = OPERATORS.get(round % OPERATORS.size());
            op = op.kind().isDefinedOn(dtype) ? op : ReduceOp.SUM;
            Tensor direct = filled(seen(dtype, count), group.rank(), count);
            Tensor staged = filled(elsewhere(dtype, count), group.rank(), count);
            group.barrier();
            group.allReduce(direct, op);
            group.allReduce(staged, op);
            assertSame(direct, staged, op + " of " + count);
            // The memory that other ranks accessed belongs to the caller again.
            direct.segment().fill((byte) round++);
          }
          return group.rank();
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void oneTensorElsewhereIsEnoughForStages(int ranks) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          for (int other = 0; other < ranks; other++) {
            long count = 300_000;
            Tensor tensor =
                group.rank() == other ? elsewhere(DType.INT32, count) : seen(DType.INT32, count);
            long sum = 0;
            for (int rank = 0; rank < ranks; rank++) {
              sum += (rank + 1) * 10L + other;
            }
            for (long i = 0; i < count; i++) {
              tensor.setLong(i, (group.rank() + 1) * 10L + other);
            }
            group.barrier();
            group.allReduce(tensor);
            for (long i = 0; i < count; i += 1001) {
              assertThat(tensor.getLong(i)).isEqualTo(sum);
            }
          }
          return group.rank();
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 4})
  void broadcastsArriveFromWhereverTheRootIs(int ranks) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          int round = 0;
          for (long count : counts(DType.INT32)) {
            for (int root = 0; root < ranks; root++) {
              boolean sees = (round + group.rank()) % 3 != 0;
              Tensor tensor = sees ? seen(DType.INT32, count) : elsewhere(DType.INT32, count);
              filled(tensor, group.rank(), round);
              group.barrier();
              group.broadcast(tensor, root);
              assertSame(
                  tensor, filled(elsewhere(DType.INT32, count), root, round), "root " + root);
              tensor.segment().fill((byte) 1);
              round++;
            }
          }
          return group.rank();
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void reduceScatterGivesTheSameBits(int ranks) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          int round = 0;
          for (long count : counts(DType.FLOAT32)) {
            ReduceOp op = OPERATORS.get(round++ % OPERATORS.size());
            Tensor staged = elsewhere(DType.FLOAT32, count);
            group.reduceScatterInto(
                staged, filled(elsewhere(DType.FLOAT32, count * ranks), group.rank(), count), op);
            Tensor input = filled(seen(DType.FLOAT32, count * ranks), group.rank(), count);
            Tensor listed = seen(DType.FLOAT32, count);
            Tensor output = elsewhere(DType.FLOAT32, count);
            group.barrier();
            group.reduceScatterInto(output, input, op);
            assertSame(output, staged, op + " of " + count);
            List<Tensor> parts = new ArrayList<>();
            for (int peer = 0; peer < ranks; peer++) {
              parts.add(input.narrow(0, peer * count, count));
            }
            group.reduceScatter(listed, parts, op);
            assertSame(listed, staged, op + " of a list of " + count);
            Tensor own = input.narrow(0, group.rank() * count, count);
            group.reduceScatterInto(own, input, op);
            assertSame(own, staged, op + " in place of " + count);
            input.segment().fill((byte) 1);
            unequal(group, count, op);
          }
          return group.rank();
        });
  }

  /** Reduces rows of which the first rank gets the fewest, and the second of three none. */
  private static void unequal(ProcessGroup group, long count, ReduceOp op) {
    long[] splits = new long[group.size()];
    Arrays.setAll(splits, rank -> group.size() == 3 && rank == 1 ? 0 : count + 33L * rank);
    long total = Arrays.stream(splits).sum();
    Tensor staged = elsewhere(DType.FLOAT32, splits[group.rank()]);
    group.reduceScatterInto(
        staged, filled(elsewhere(DType.FLOAT32, total), group.rank(), count), splits, op);
    Tensor input = filled(seen(DType.FLOAT32, total), group.rank(), count);
    Tensor output = elsewhere(DType.FLOAT32, splits[group.rank()]);
    group.barrier();
    Work work = group.reduceScatterInto(output, input, splits, op, CallOptions.DEFAULT);
    boolean isDirect =
        (count + 66) * Float.BYTES >= SharedHeap.LEAST_BYTES
            && op.kind() != ReduceOp.Kind.PREMUL_SUM;
    assertThat(work.path()).hasValue(isDirect ? "gloo/shared/direct" : "gloo/shared/staged");
    assertSame(output, staged, op + " of unequal parts of " + count);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void gathersArrive(int ranks) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          int round = 0;
          for (long count : counts(DType.INT32)) {
            for (boolean inPlace : new boolean[] {false, true}) {
              Tensor output =
                  round % 2 == 0
                      ? seen(DType.INT32, count * ranks)
                      : elsewhere(DType.INT32, count * ranks);
              Tensor input =
                  inPlace
                      ? output.narrow(0, group.rank() * count, count)
                      : seen(DType.INT32, count);
              filled(input, group.rank(), round);
              group.barrier();
              group.allGatherInto(output, input);
              for (int peer = 0; peer < ranks; peer++) {
                assertSame(
                    output.narrow(0, peer * count, count),
                    filled(elsewhere(DType.INT32, count), peer, round),
                    "part " + peer);
              }
              input.segment().fill((byte) 1);
              round++;
            }
            unequal(group, count);
          }
          return group.rank();
        });
  }

  /** Parts have any size, including zero, and those of rank 1 are sometimes in other memory. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void exchangesArrive(int ranks) throws Exception {
    GlooWorld.run(
        ranks,
        group -> {
          for (int round = 0; round < 12; round++) {
            List<Tensor> inputs = new ArrayList<>();
            List<Tensor> outputs = new ArrayList<>();
            for (int peer = 0; peer < ranks; peer++) {
              long sent = (group.rank() * 5L + peer * 3L + round) % 4 * 9000;
              long received = (peer * 5L + group.rank() * 3L + round) % 4 * 9000;
              boolean sees = sent > 0 && (group.rank() != 1 || round % 2 == 0);
              Tensor input = sees ? seen(DType.INT32, sent) : elsewhere(DType.INT32, sent);
              inputs.add(filled(input, group.rank(), round * 100L + peer));
              outputs.add(Tensor.allocate(DType.INT32, received));
            }
            group.barrier();
            group.allToAll(outputs, inputs);
            for (int peer = 0; peer < ranks; peer++) {
              Tensor output = outputs.get(peer);
              assertSame(
                  output,
                  filled(elsewhere(DType.INT32, output.numel()), peer, round * 100L + group.rank()),
                  "round " + round + " from " + peer);
              inputs.get(peer).segment().fill((byte) 1);
            }
          }
          return group.rank();
        });
  }

  /** Gathers rows, of which the second of three ranks has none. */
  private static void unequal(ProcessGroup group, long count) {
    int rank = group.rank();
    long[] splits = new long[group.size()];
    Arrays.setAll(splits, r -> group.size() == 3 && r == 1 ? 0 : count + 33L * r);
    Tensor output = elsewhere(DType.INT32, Arrays.stream(splits).sum());
    Tensor input = filled(seen(DType.INT32, splits[rank]), rank, count);
    group.barrier();
    group.allGatherInto(output, input, splits);
    long start = 0;
    for (int peer = 0; peer < splits.length; peer++) {
      assertSame(
          output.narrow(0, start, splits[peer]),
          filled(elsewhere(DType.INT32, splits[peer]), peer, count),
          "unequal part " + peer);
      start += splits[peer];
    }
  }

  private static void all(ProcessGroup group, Tensor tensor) {
    long part = tensor.numel() / group.size();
    group.reduceScatterInto(Tensor.allocate(DType.FLOAT32, part), tensor, ReduceOp.SUM);
    group.allReduce(tensor);
  }

  @Test
  void ranksOfWhichOneLeavesFailWithIt() throws Exception {
    GlooWorld.failsWhenOneAborts(group -> group.allReduce(seen(DType.FLOAT32, 1 << 20)));
    GlooWorld.failsWhenOneAborts(group -> group.broadcast(seen(DType.FLOAT32, 1 << 20), 0));
    GlooWorld.failsWhenOneAborts(group -> all(group, seen(DType.FLOAT32, 1 << 20)));
  }
}
