package dev.tutti;

/** The choice of how many missing ranks a {@link ProcessGroup#monitoredBarrier} names. */
public enum MissingRanks {
  /** Only the first one: the barrier fails as soon as it finds one rank missing. */
  FIRST,
  /** All of them: the barrier waits for each rank until the deadline. */
  ALL
}
