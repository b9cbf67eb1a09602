package dev.tutti.cli.bench;

import java.util.Locale;

/**
 * One line of results.
 *
 * @param op the name of the operation
 * @param backend the name of the backend
 * @param ranks the number of ranks
 * @param bytes the number of bytes of the whole
 * @param count the number of elements of the whole, or of one rank's part
 * @param dtype the element type
 * @param redop how elements were reduced, or "none"
 * @param p50 the median time of an operation in microseconds
 * @param p99 the time in microseconds below which 99 of 100 operations stay; on a device, below
 *     which the means of 99 of 100 batches of operations stay
 * @param mean the mean time of an operation in microseconds
 * @param busFactor the factor by which algorithm bandwidth is multiplied to get bus bandwidth
 * @param wrong the number of wrong elements over all ranks, before and after the measurement
 */
record BenchRow(
    String op,
    String backend,
    int ranks,
    long bytes,
    long count,
    String dtype,
    String redop,
    double p50,
    double p99,
    double mean,
    double busFactor,
    long wrong) {

  /** Returns bytes divided by median time, in 10^9 bytes per second. */
  double algorithmBandwidth() {
    return p50 > 0 ? bytes / p50 / 1e3 : 0;
  }

  /** Returns the load on the busiest link, in 10^9 bytes per second. */
  double busBandwidth() {
    return algorithmBandwidth() * busFactor;
  }

  /** Formats the row as a single-line JSON object. */
  String toJson() {
    return String.format(
        Locale.ROOT,
        "{\"op\":\"%s\",\"backend\":\"%s\",\"ranks\":%d,\"bytes\":%d,\"count\":%d,"
            + "\"dtype\":\"%s\",\"redop\":\"%s\",\"time_us_p50\":%.3f,\"time_us_p99\":%.3f,"
            + "\"time_us_mean\":%.3f,\"algbw_gbps\":%.6f,\"busbw_gbps\":%.6f,\"wrong\":%d}",
        op,
        backend,
        ranks,
        bytes,
        count,
        dtype,
        redop,
        p50,
        p99,
        mean,
        algorithmBandwidth(),
        busBandwidth(),
        wrong);
  }

  /** Encodes the row for {@link #decode}. */
  String encode() {
    return String.join(
        "\t",
        op,
        backend,
        Integer.toString(ranks),
        Long.toString(bytes),
        Long.toString(count),
        dtype,
        redop,
        Double.toString(p50),
        Double.toString(p99),
        Double.toString(mean),
        Double.toString(busFactor),
        Long.toString(wrong));
  }

  /** Decodes the output of {@link #encode}. */
  static BenchRow decode(String text) {
    String[] fields = text.split("\t", -1);
    return new BenchRow(
        fields[0],
        fields[1],
        Integer.parseInt(fields[2]),
        Long.parseLong(fields[3]),
        Long.parseLong(fields[4]),
        fields[5],
        fields[6],
        Double.parseDouble(fields[7]),
        Double.parseDouble(fields[8]),
        Double.parseDouble(fields[9]),
        Double.parseDouble(fields[10]),
        Long.parseLong(fields[11]));
  }
}
