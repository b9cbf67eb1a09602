package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.spi.BackendProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the collectives over sockets. */
@Timeout(300)
class CollectivesTest {
  private static final long LARGE = 1_000_003;

  /** The number of elements after which the values repeat. */
  private static final int PERIOD = 5;

  /** Returns how many bytes the ranks share. */
  String sharedBytes() {
    return "0";
  }

  /** Returns which algorithms to use. */
  String algorithms() {
    return "";
  }

  /** Returns the provider of the backends. */
  BackendProvider provider() {
    return new GlooProvider();
  }

  private <T> List<T> run(int size, GlooWorld.Body<T> body) throws Exception {
    Settings settings =
        GlooWorld.settings(
            GlooProvider.SHARED_BYTES.name(),
            sharedBytes(),
            GlooProvider.ALGORITHMS.name(),
            algorithms());
    return GlooWorld.run(size, settings, provider(), body);
  }

  private static long[] counts(int size) {
    return LongList.distinct(0, 1, 3, size - 1, size, 17, 4096 / 4 + 1);
  }

  private static double value(int rank, long index) {
    return (index % PERIOD + rank) % 4 + 1;
  }

  /**
   * Returns a view of the numbers of a vector: the real parts of complex ones, the bytes of opaque
   * ones.
   */
  private static Tensor reals(Tensor tensor) {
    if (tensor.dtype().isOpaque()) {
      return tensor.view(DType.UINT8);
    }
    return tensor.dtype().isComplex() ? tensor.viewAsReal().select(1, 0) : tensor;
  }

  private static Tensor filled(DType dtype, int rank, long count) {
    Tensor tensor = Tensor.allocate(dtype, count);
    Tensor reals = reals(tensor);
    for (long i = 0; i < Math.min(count, PERIOD); i++) {
      reals.setDouble(i, value(rank, i));
    }
    Repeating.fill(tensor, PERIOD);
    return tensor;
  }

  private static double reduced(ReduceOp op, int size, long index) {
    double[] values = IntStream.range(0, size).mapToDouble(r -> value(r, index)).toArray();
    double result = values[0];
    for (int r = 1; r < size; r++) {
      double next = values[r];
      result =
          switch (op.kind()) {
            case SUM, AVG, PREMUL_SUM -> result + next;
            case PRODUCT -> result * next;
            case MIN -> Math.min(result, next);
            case MAX -> Math.max(result, next);
            case BAND -> (long) result & (long) next;
            case BOR -> (long) result | (long) next;
            case BXOR -> (long) result ^ (long) next;
          };
    }
    return op.equals(ReduceOp.AVG) ? result / size : result;
  }

  private static List<ReduceOp> operators(DType dtype) {
    List<ReduceOp> defined = new ArrayList<>();
    for (ReduceOp op :
        List.of(
            ReduceOp.SUM,
            ReduceOp.AVG,
            ReduceOp.PRODUCT,
            ReduceOp.MIN,
            ReduceOp.MAX,
            ReduceOp.BAND,
            ReduceOp.BOR,
            ReduceOp.BXOR)) {
      if (dtype != DType.BOOL && op.isDefinedOn(dtype)) {
        defined.add(op);
      }
    }
    return defined;
  }

  private static void assertReduced(Tensor tensor, ReduceOp op, int size, String what) {
    double[] values = IntStream.range(0, PERIOD).mapToDouble(i -> reduced(op, size, i)).toArray();
    boolean whole = !tensor.dtype().isFloatingPoint() && !tensor.dtype().isComplex();
    Tensor reals = reals(tensor);
    long count = Repeating.telling(tensor, PERIOD);
    for (long i = 0; i < count; i++) {
      double value = values[(int) (i % PERIOD)];
      double expected = whole ? Math.floor(value) : value;
      double actual = reals.getDouble(i);
      // The inputs are small whole numbers, so only the division of AVG rounds.
      double tolerance = op.equals(ReduceOp.AVG) ? Math.abs(expected) / 128 : 0;
      if (Math.abs(actual - expected) > tolerance) {
        assertThat(actual).as("%s, element %d", what, i).isEqualTo(expected);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void allReduces(int size) throws Exception {
    run(
        size,
        group -> {
          for (DType dtype : DType.values()) {
            for (ReduceOp op : operators(dtype)) {
              for (long count : counts(size)) {
                Tensor tensor = filled(dtype, group.rank(), count);
                group.allReduce(tensor, op);
                assertReduced(tensor, op, size, dtype + " " + op + " " + count);
              }
            }
          }
          return null;
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5})
  void allReducesLargeTensors(int size) throws Exception {
    run(
        size,
        group -> {
          for (DType dtype : List.of(DType.FLOAT32, DType.INT8, DType.FLOAT64)) {
            Tensor tensor = filled(dtype, group.rank(), LARGE);
            group.allReduce(tensor, ReduceOp.SUM);
            assertReduced(tensor, ReduceOp.SUM, size, dtype + " large");
          }
          return null;
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void reducesToEachRoot(int size) throws Exception {
    run(
        size,
        group -> {
          for (int root = 0; root < size; root++) {
            for (long count : counts(size)) {
              Tensor tensor = filled(DType.INT32, group.rank(), count);
              group.reduce(tensor, ReduceOp.SUM, root);
              if (group.rank() == root) {
                assertReduced(tensor, ReduceOp.SUM, size, "root " + root + " count " + count);
              }
            }
          }
          // More than two segments per rank: Gloo's ring then takes more steps than needed.
          Tensor tensor = filled(DType.FLOAT32, group.rank(), 3 * LARGE);
          group.reduce(tensor, ReduceOp.SUM, size - 1);
          if (group.rank() == size - 1) {
            assertReduced(tensor, ReduceOp.SUM, size, "large");
          }
          return null;
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void broadcastsFromEachRoot(int size) throws Exception {
    run(
        size,
        group -> {
          for (DType dtype : DType.values()) {
            for (int root = 0; root < size; root++) {
              for (long count : LongList.distinct(0, 1, 17, dtype == DType.INT8 ? LARGE : 5000)) {
                Tensor tensor = filled(dtype, group.rank(), count);
                group.broadcast(tensor, root);
                Tensor expected = filled(dtype, root, count);
                assertThat(tensor.segment().mismatch(expected.segment()))
                    .as("%s root %d count %d", dtype, root, count)
                    .isEqualTo(-1);
              }
            }
          }
          return null;
        });
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void gathersOnAll(int size) throws Exception {
    run(
        size,
        group -> {
          for (DType dtype : List.of(DType.INT8, DType.BFLOAT16, DType.FLOAT32, DType.INT64)) {
            for (long count :
                LongList.distinct(0, 1, 3, 17, 5001, dtype == DType.INT8 ? LARGE : 2)) {
              gather(group, dtype, count);
            }
          }
          return null;
        });
  }

  private static void gather(ProcessGroup group, DType dtype, long count) {
    Tensor input = filled(dtype, group.rank(), count);
    Tensor output = Tensor.allocate(dtype, group.size() * count);
    group.allGatherInto(output, input);
    List<Tensor> outputs = new ArrayList<>();
    for (int r = 0; r < group.size(); r++) {
      outputs.add(Tensor.allocate(dtype, count));
    }
    group.allGather(outputs, input);
    for (int r = 0; r < group.size(); r++) {
      Tensor expected = filled(dtype, r, count);
      assertThat(output.narrow(0, r * count, count).copy().segment().mismatch(expected.segment()))
          .as("into, %s count %d of rank %d", dtype, count, r)
          .isEqualTo(-1);
      assertThat(outputs.get(r).segment().mismatch(expected.segment()))
          .as("list, %s count %d of rank %d", dtype, count, r)
          .isEqualTo(-1);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void barrierWaitsForAll(int size) throws Exception {
    int[] arrived = new int[size];
    run(
        size,
        group -> {
          for (int round = 1; round <= 50; round++) {
            arrived[group.rank()] = round;
            group.barrier();
            for (int peer = 0; peer < size; peer++) {
              assertThat(arrived[peer]).isGreaterThanOrEqualTo(round);
            }
            group.barrier();
          }
          return null;
        });
  }
}
