package dev.tutti.cli.simulate;

import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.Map;

/** The time of an operation in seconds, by what it waits for. */
public final class Cost {
  private final Map<Resource, Double> seconds = new EnumMap<>(Resource.class);

  /** Creates a cost of nothing. */
  public Cost() {}

  /** Adds seconds to a resource. */
  void add(Resource resource, double more) {
    seconds.merge(resource, more, Double::sum);
  }

  /** Returns the seconds for which the operation waits for a resource. */
  public double of(Resource resource) {
    return seconds.getOrDefault(resource, 0.0);
  }

  /** Returns the time of the operation in seconds. */
  public double seconds() {
    return seconds.values().stream().mapToDouble(Double::doubleValue).sum();
  }

  /** Returns the resource with the largest share of the time; the first one if all are 0. */
  public Resource bound() {
    return Arrays.stream(Resource.values())
        .max(Comparator.comparingDouble(this::of).thenComparing(Comparator.reverseOrder()))
        .orElseThrow();
  }

  /** Returns the share of a resource in the time, from 0 to 1. */
  public double share(Resource resource) {
    double all = seconds();
    return all == 0 ? 0 : of(resource) / all;
  }
}
