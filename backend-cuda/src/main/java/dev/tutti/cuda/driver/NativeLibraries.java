package dev.tutti.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.util.Optional;

/** Looks for shared libraries. One that is found stays open: not all survive being closed. */
final class NativeLibraries {
  private NativeLibraries() {}

  /** Returns why a library cannot be opened, or empty if it can. */
  static Optional<String> why(String name) {
    try {
      SymbolLookup _ = SymbolLookup.libraryLookup(name, Arena.global());
      return Optional.empty();
    } catch (IllegalArgumentException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }
}
