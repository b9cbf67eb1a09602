package dev.tutti.cli.bench;

import dev.tutti.cli.process.Counts;
import java.io.PrintStream;
import java.util.Locale;

/** A printer of rows in the columns of nccl-tests. */
final class BenchTable {
  private static final String HEADER = "%12s %12s %9s %8s | %11s %11s %11s %11s %7s";
  private static final String ROW = "%12d %12d %9s %8s | %11s %11s %11s %11s %7d";

  /** The most decimals that a column has room for. */
  private static final int MOST_DECIMALS = 9;

  private final PrintStream out;
  private String current = "";

  /**
   * Creates a table.
   *
   * @param out the stream to print to
   */
  BenchTable(PrintStream out) {
    this.out = out;
  }

  /** Prints a row, with column titles before the first row of each operation. */
  void add(BenchRow row) {
    if (!row.op().equals(current)) {
      out.printf(
          Locale.ROOT,
          "%s# %s, %s, backend %s%n",
          current.isEmpty() ? "" : System.lineSeparator(),
          row.op(),
          Counts.of(row.ranks(), "rank"),
          row.backend());
      out.println(
          String.format(
              Locale.ROOT,
              "#" + HEADER,
              "size",
              "count",
              "type",
              "redop",
              "time p50",
              "time p99",
              "algbw",
              "busbw",
              "#wrong"));
      out.println(
          String.format(
              Locale.ROOT,
              "#" + HEADER,
              "(B)",
              "(elements)",
              "",
              "",
              "(us)",
              "(us)",
              "(GB/s)",
              "(GB/s)",
              ""));
      current = row.op();
    }
    out.println(
        String.format(
            Locale.ROOT,
            " " + ROW,
            row.bytes(),
            row.count(),
            row.dtype(),
            row.redop(),
            digits(row.p50()),
            digits(row.p99()),
            digits(row.algorithmBandwidth()),
            digits(row.busBandwidth()),
            row.wrong()));
    out.flush();
  }

  /** Formats a number with two decimals, or with three significant digits if it is small. */
  static String digits(double value) {
    int decimals = value == 0 || value >= 0.1 ? 2 : 2 - (int) Math.floor(Math.log10(value));
    return String.format(Locale.ROOT, "%." + Math.min(decimals, MOST_DECIMALS) + "f", value);
  }
}
