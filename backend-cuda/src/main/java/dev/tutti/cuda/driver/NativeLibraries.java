package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;

/** Looks for shared libraries. One that is found stays open: not all survive being closed. */
final class NativeLibraries {
  private NativeLibraries() {}

  /** Tells whether the loader finds a library. */
  static boolean isPresent(String name) {
    try {
      SymbolLookup _ = SymbolLookup.libraryLookup(name, Arena.global());
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }
}
