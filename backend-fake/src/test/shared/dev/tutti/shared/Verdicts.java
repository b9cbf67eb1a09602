package dev.tutti.shared;

import dev.tutti.CollectiveException;
import dev.tutti.RendezvousException;
import dev.tutti.fake.simulation.SimulatedWorld.Outcome;
import dev.tutti.fake.simulation.SimulatedWorld.RankEnd;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Whom the ranks of simulated worlds name. */
public final class Verdicts {
  /** What a rank says that is cut off from the store, and so cannot agree with others. */
  private static final Pattern ALONE =
      Pattern.compile(
          "the store does not answer, so no rank can be asked"
              + "|the simulated store did not answer in time"
              + "|the simulated store/\\S+ does not answer within 5 s");

  private Verdicts() {}

  /**
   * Returns whom the ranks name that can agree, or how else they ended.
   *
   * @param named returns whom the text names of a rank that could not join; empty if nobody
   */
  public static Set<String> of(Outcome outcome, UnaryOperator<String> named) {
    return outcome.ends().stream()
        .filter(end -> !end.crashed() && !isAlone(end))
        .map(end -> of(end, named))
        .collect(Collectors.toSet());
  }

  private static boolean isAlone(RankEnd end) {
    Throwable failure = end.failure();
    return failure != null && ALONE.matcher(String.valueOf(failure.getMessage())).find();
  }

  private static String of(RankEnd end, UnaryOperator<String> named) {
    return switch (end.failure()) {
      case null -> "done";
      case CollectiveException e ->
          e.failedRank().isPresent() ? "rank " + e.failedRank().getAsInt() : "nobody";
      case RendezvousException e -> {
        String ranks = named.apply(e.toString());
        yield ranks.isEmpty() ? "nobody" : ranks;
      }
      case Throwable other -> other.toString();
    };
  }

  /**
   * Returns the ranks that a text names, which should be one at most; empty if it names none.
   *
   * @param how where the number of a rank is
   */
  public static String named(Pattern how, String text) {
    return how.matcher(text)
        .results()
        .map(found -> "rank " + found.group())
        .distinct()
        .collect(Collectors.joining(" and "));
  }
}
