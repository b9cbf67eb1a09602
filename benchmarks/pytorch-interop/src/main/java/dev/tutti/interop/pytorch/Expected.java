package dev.tutti.interop.pytorch;

import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerOracle;
import java.io.ByteArrayOutputStream;
import java.util.LongSummaryStatistics;
import java.util.stream.LongStream;

/** Computes what a line must leave on a rank, without running it. */
final class Expected {
  /** Stands for a rank that does not take part in a line. */
  static final String NOTHING = "-";

  /** Stands for a result that depends on the order of rounding, but is the same on all ranks. */
  static final String ROUNDED = "=";

  private Expected() {}

  /**
   * Computes the checksum of a result.
   *
   * @param line the line
   * @param rank rank in the group of the line
   * @param size size of that group
   * @return the checksum as {@link PeerData#crc} writes it, or {@link #ROUNDED}
   */
  static String checksum(Line line, int rank, int size) {
    if (line.option("data", "").equals("fraction") && line.op().contains("reduce")) {
      return ROUNDED;
    }
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    switch (line.op()) {
      case "newgroup" -> {}
      case "exchange" -> {
        for (int from = 0; from < size; from++) {
          message(bytes, line, from, rank, size);
        }
      }
      case "ring" -> message(bytes, line, (rank + size - 1) % size, rank, size);
      case "anysource" -> {
        for (int from = 0; from < size && rank == line.root(); from++) {
          message(bytes, line, from, rank, size);
        }
      }
      case "alltoall" ->
          same(bytes, "alltoall_base " + line.word(1) + " " + line.word(2), rank, size);
      case "allgather_coalesced" -> {
        LongSummaryStatistics counts = LongStream.of(line.counts(2)).summaryStatistics();
        same(bytes, "allgather " + line.word(1) + " " + counts.getSum(), rank, size);
      }
      default -> same(bytes, line.toString(), rank, size);
    }
    return PeerData.crc(bytes.toByteArray());
  }

  private static void message(
      ByteArrayOutputStream bytes, Line line, int from, int rank, int size) {
    if (from != rank) {
      same(bytes, "recv " + from + " 0 " + line.word(1) + " " + line.word(2), rank, size);
    }
  }

  private static void same(ByteArrayOutputStream bytes, String script, int rank, int size) {
    bytes.writeBytes(PeerOracle.expected(script, rank, size));
  }
}
