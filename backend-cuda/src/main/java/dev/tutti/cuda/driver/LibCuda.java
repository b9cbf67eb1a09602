package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/**
 * The functions of {@code libcuda.so.1}. They take addresses and handles as plain numbers, so no
 * call allocates. This class must not be initialized before {@link NativeLibraries} has found the
 * library.
 */
final class LibCuda {
  static final String NAME = "libcuda.so.1";

  private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup(NAME, Arena.global());

  private LibCuda() {}

  /** Finds a function that returns a driver result. */
  static MethodHandle function(String name, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(LIBRARY.findOrThrow(name), FunctionDescriptor.of(JAVA_INT, parameters));
  }
}
