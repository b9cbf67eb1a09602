package dev.tutti.cli;

import dev.tutti.Store;

/**
 * Deletes what the ranks of an attempt left in the store, which outlives them: those of the next
 * one would take the addresses and ids there for those of each other. A launcher of PyTorch has a
 * new store for each attempt instead.
 */
final class Leftovers {
  /** Keeps the launchers' keys apart from those of the ranks. */
  static final String KEPT = "tutti-run";

  private Leftovers() {}

  /**
   * Deletes all but the launchers' own keys; no rank may run.
   *
   * @param store what launchers and ranks share, without a prefix
   */
  static void delete(Store store) {
    for (String key : store.listKeys()) {
      if (!key.startsWith(KEPT + "/")) {
        store.deleteKey(key);
      }
    }
  }
}
