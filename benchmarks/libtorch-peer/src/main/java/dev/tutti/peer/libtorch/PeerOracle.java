package dev.tutti.peer.libtorch;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * What a line of a peer script leaves on a rank, computed from {@link PeerData} alone.
 *
 * <p>Reductions are exact only for the patterns SMALL and POWER. As in libtorch's Gloo, a sum of
 * bools is the number of trues in a byte if the wire buffer is the result (allreduce, reduce,
 * reduce_scatter), and 0 or 1 if libtorch copies it into the result (the coalesced forms and
 * reduce_scatter_base).
 */
public final class PeerOracle {
  private final ScriptLine line;
  private final int rank;
  private final int size;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  private PeerOracle(ScriptLine line, int rank, int size) {
    this.line = line;
    this.rank = rank;
    this.size = size;
  }

  /**
   * Compute the result of a collective, a send or a recv.
   *
   * @param script the line as the peer gets it
   * @param rank rank within the group of the line
   * @param size number of ranks of that group
   * @return result bytes, little-endian; none for an operation that leaves no data on the rank
   * @throws IllegalArgumentException if the result does not follow from the line, as for {@code
   *     recvany}, or depends on rounding, as for a reduction with {@code data=fraction}
   */
  public static byte[] expected(String script, int rank, int size) {
    PeerOracle oracle = new PeerOracle(ScriptLine.parse(1, script), rank, size);
    oracle.compute();
    return oracle.out.toByteArray();
  }

  private void compute() {
    switch (line.op()) {
      case "allreduce" -> reduced(0, count(2));
      case "allreduce_coalesced" -> reduced(0, LongStream.of(counts(2)).sum());
      case "allreduce_sparse" -> sparse();
      case "reduce" -> {
        if (rank == line.root()) {
          reduced(0, count(2));
        }
      }
      case "reduce_scatter", "reduce_scatter_base" -> reduced(rank * count(2), count(2));
      case "reduce_scatter_tensor_coalesced" -> {
        long offset = 0;
        for (long count : counts(2)) {
          reduced(offset + rank * count, count);
          offset += count * size;
        }
      }
      case "broadcast" -> input(line.root(), 0, count(1));
      case "allgather", "allgather_base" -> gathered(0, count(1));
      case "allgather_into_tensor_coalesced" -> {
        long offset = 0;
        for (long count : counts(1)) {
          gathered(offset, count);
          offset += count;
        }
      }
      case "gather" -> {
        if (rank == line.root()) {
          gathered(0, count(1));
        }
      }
      case "scatter" -> input(line.root(), rank * count(1), count(1));
      case "alltoall_base" -> exchanged();
      case "recv" -> input(line.number(0, "the sender"), 0, line.number(3, "the count"));
      case "send", "barrier", "monitored_barrier" -> {}
      default ->
          throw new IllegalArgumentException(
              "the result does not follow from the line alone: " + line.op());
    }
  }

  private void exchanged() {
    for (int sender = 0; sender < size; sender++) {
      if (line.options().containsKey("splits")) {
        long[] row = Flags.numbers(line.required("splits").split(";")[sender]);
        input(sender, Arrays.stream(row, 0, rank).sum(), row[rank]);
      } else {
        input(sender, rank * count(1), count(1));
      }
    }
  }

  private void gathered(long from, long count) {
    for (int contributor = 0; contributor < size; contributor++) {
      input(contributor, from, count);
    }
  }

  private void input(int contributor, long from, long count) {
    int typePosition = line.op().equals("recv") ? 2 : 0;
    out.writeBytes(
        PeerData.input(
            line.type(typePosition),
            pattern(""),
            contributor,
            from,
            Math.toIntExact(count),
            line.seed()));
  }

  private void reduced(long from, long count) {
    PeerType type = line.type(0);
    String op = line.word(1, "the reduce op");
    PeerData.Pattern pattern = exactPattern(op);
    ByteBuffer bytes =
        ByteBuffer.allocate(Math.toIntExact(count * type.byteSize()))
            .order(ByteOrder.LITTLE_ENDIAN);
    for (long i = from * type.components(); i < (from + count) * type.components(); i++) {
      double total = PeerData.value(type, pattern, 0, i, line.seed());
      for (int r = 1; r < size; r++) {
        total = combine(op, total, PeerData.value(type, pattern, r, i, line.seed()));
      }
      type.put(bytes, finish(type, op, total));
    }
    out.writeBytes(bytes.array());
  }

  private double finish(PeerType type, String op, double total) {
    if (op.equals("avg")) {
      return total / size;
    }
    boolean copied =
        switch (line.op()) {
          case "allreduce", "reduce", "reduce_scatter" -> false;
          default -> true;
        };
    return type == PeerType.BOOL && copied ? Math.min(total, 1) : total;
  }

  private static double combine(String op, double a, double b) {
    return switch (op) {
      case "sum", "avg" -> a + b;
      case "product" -> a * b;
      case "min" -> Math.min(a, b);
      case "max" -> Math.max(a, b);
      case "band" -> (long) a & (long) b;
      case "bor" -> (long) a | (long) b;
      case "bxor" -> (long) a ^ (long) b;
      default -> throw new IllegalArgumentException("no such reduce op: " + op);
    };
  }

  private void sparse() {
    PeerType type = line.type(0);
    int rows = line.number(2, "the rows");
    int columns = line.number(3, "the columns");
    int stored = line.number(4, "the stored rows");
    double[] dense = new double[rows * columns];
    for (int r = 0; r < size; r++) {
      for (int i = 0; i < stored * columns; i++) {
        int row = (r + 3 * (i / columns)) % rows;
        dense[row * columns + i % columns] +=
            PeerData.value(type, exactPattern("sum"), r, i, line.seed());
      }
    }
    ByteBuffer bytes =
        ByteBuffer.allocate(dense.length * type.byteSize()).order(ByteOrder.LITTLE_ENDIAN);
    Arrays.stream(dense).forEach(value -> type.put(bytes, value));
    out.writeBytes(bytes.array());
  }

  private PeerData.Pattern exactPattern(String reduceOp) {
    PeerData.Pattern pattern = pattern(reduceOp);
    if (pattern == PeerData.Pattern.FRACTION) {
      throw new IllegalArgumentException(
          "a reduction with data=fraction depends on the order of rounding");
    }
    return pattern;
  }

  private PeerData.Pattern pattern(String reduceOp) {
    return PeerData.Pattern.of(reduceOp, line.option("data", "default"));
  }

  private long count(int position) {
    return line.number(position, "the count");
  }

  private long[] counts(int position) {
    return Flags.numbers(line.word(position, "the counts"));
  }
}
