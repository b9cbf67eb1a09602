package dev.tutti.cli.simulate;

import java.util.List;

/**
 * How much longer a byte takes if several ranks of a host move bytes at once, since cores share
 * caches, memory and units.
 *
 * @param longer the factors for 2, 4, 8 ranks and so on, at least one
 */
public record Shares(List<Double> longer) {
  /** No sharing. */
  public static final Shares NONE = new Shares(List.of(1.0));

  /** Creates shares. */
  public Shares {
    longer = List.copyOf(longer);
    if (longer.isEmpty()) {
      throw new IllegalArgumentException("no numbers");
    }
  }

  /** Returns the factor for a number of ranks; for more than were measured, that of the most. */
  double of(int ranks) {
    double place = Math.max(0, Math.log(ranks) / Math.log(2) - 1);
    int before = (int) Math.min(place, longer.size() - 1);
    int after = Math.min(before + 1, longer.size() - 1);
    double share = Math.min(1, place - before);
    return longer.get(before) * (1 - share) + longer.get(after) * share;
  }
}
