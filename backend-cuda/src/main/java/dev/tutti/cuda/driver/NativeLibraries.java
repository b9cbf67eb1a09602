package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;

/**
 * Static methods that find shared libraries. A library that was found stays open: not every library
 * survives being closed.
 */
final class NativeLibraries {
  private NativeLibraries() {}

  /** Returns whether the loader can find a library. */
  static boolean isPresent(String name) {
    try {
      SymbolLookup _ = SymbolLookup.libraryLookup(name, Arena.global());
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }
}
