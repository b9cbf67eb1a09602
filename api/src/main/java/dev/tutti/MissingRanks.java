package dev.tutti;

/** How many of the missing ranks a {@link ProcessGroup#monitoredBarrier} names. */
public enum MissingRanks {
  /** The first one: the barrier fails as soon as one rank is late. */
  FIRST,
  /** All: the barrier waits for each rank until the deadline. */
  ALL
}
