package dev.tutti.cli.trace;

import dev.tutti.cli.trace.TraceAnalysis.Share;
import dev.tutti.cli.trace.TraceAnalysis.Straggling;
import java.util.List;
import java.util.Map;

/**
 * Compares the flight records of ranks that run: which calls do not fit, and who comes last. It
 * does not tell which ranks are missing, as the records are not of one moment.
 */
public final class LiveComparison {
  private final TraceAnalysis analysis;

  private LiveComparison(TraceAnalysis analysis) {
    this.analysis = analysis;
  }

  /**
   * How a rank keeps others waiting.
   *
   * @param times how often it came last
   * @param of so many collectives
   * @param medianNanos by how much, where it did
   */
  public record Lag(int times, int of, long medianNanos) {}

  /** Compares the records of ranks, as plain maps. */
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

  /** Says which calls do not fit each other; empty if all do. */
  public List<String> disagreements() {
    return List.copyOf(analysis.disagreements);
  }

  /** Tells how a rank keeps others waiting. */
  public Lag lagOf(int rank) {
    Straggling last = analysis.stragglers.getOrDefault(rank, new Straggling());
    Share share = analysis.shares.getOrDefault(rank, new Share());
    return new Lag(last.times, share.collectives, last.medianLag());
  }
}
