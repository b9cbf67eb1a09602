package dev.tutti.cli.trace;

import dev.tutti.cli.trace.TraceAnalysis.Share;
import dev.tutti.cli.trace.TraceAnalysis.Straggling;
import java.util.List;
import java.util.Map;

/**
 * A comparison of the flight records of running ranks: which calls do not match, and which rank
 * comes last. The comparison does not tell which ranks are missing, since the records were not
 * taken at the same moment.
 */
public final class LiveComparison {
  private final TraceAnalysis analysis;

  private LiveComparison(TraceAnalysis analysis) {
    this.analysis = analysis;
  }

  /**
   * How a rank keeps others waiting.
   *
   * @param times how often the rank came last
   * @param of the number of collectives considered
   * @param medianNanos the median lag when it came last
   */
  public record Lag(int times, int of, long medianNanos) {}

  /** Compares the records of ranks, given as plain maps. */
  public static LiveComparison of(Map<Integer, ? extends Map<?, ?>> records) {
    RankTrace trace = RankTrace.empty();
    records.forEach(
        (rank, record) -> {
          if (record.get("entries") instanceof List<?> entries) {
            TraceFiles.add(record, entries, rank, trace);
          }
        });
    return new LiveComparison(TraceAnalysis.of(trace));
  }

  /** Returns which calls do not match; empty if all do. */
  public List<String> disagreements() {
    return List.copyOf(analysis.disagreements);
  }

  /** Returns how a rank keeps others waiting. */
  public Lag lagOf(int rank) {
    Straggling last = analysis.stragglers.getOrDefault(rank, new Straggling());
    Share share = analysis.shares.getOrDefault(rank, new Share());
    return new Lag(last.times, share.collectives, last.medianLag());
  }
}
