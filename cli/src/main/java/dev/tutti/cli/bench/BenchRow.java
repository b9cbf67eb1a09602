package dev.tutti.cli.bench;

import java.util.Locale;

/**
 * One line of results.
 *
 * @param op name of the operation
 * @param backend name of the backend
 * @param ranks number of ranks
 * @param bytes bytes of the whole
 * @param count elements of the whole, or of one rank's part
 * @param dtype element type
 * @param redop how elements were reduced, or "none"
 * @param p50 median time of an operation in microseconds
 * @param p99 time in microseconds that 99 of 100 operations stay below; on a device, that the means
 *     of 99 of 100 batches of operations stay below
 * @param mean mean time of an operation in microseconds
 * @param busFactor what algorithm bandwidth is multiplied with to get bus bandwidth
 * @param wrong wrong elements over all ranks, before and after the measurement
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

  /** Returns bytes over median time, in 10^9 bytes per second. */
  double algorithmBandwidth() {
    return p50 > 0 ? bytes / p50 / 1e3 : 0;
  }

  /** Returns the load of the busiest link, in 10^9 bytes per second. */
  double busBandwidth() {
    return algorithmBandwidth() * busFactor;
  }

  /** Writes the row as a JSON object in one line. */
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

  /** Writes the row for {@link #decode}. */
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

  /** Reads what {@link #encode} wrote. */
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
