package dev.tutti;

/** Options of {@link ProcessGroup#subgroup(java.util.List, SubgroupOptions)}. Immutable. */
public final class SubgroupOptions {
  /** All ranks of the group make the call. */
  public static final SubgroupOptions DEFAULT = new SubgroupOptions(false);

  private final boolean localSynchronization;

  private SubgroupOptions(boolean localSynchronization) {
    this.localSynchronization = localSynchronization;
  }

  /**
   * Returns options with which only the members of the new group make the call (c10d: {@code
   * use_local_synchronization}). Groups with members in common must be made in an order that all
   * their ranks keep, or the calls wait for each other until their deadlines.
   */
  public SubgroupOptions withLocalSynchronization() {
    return new SubgroupOptions(true);
  }

  /** Returns whether only the members make the call. */
  public boolean isLocalSynchronization() {
    return localSynchronization;
  }
}
