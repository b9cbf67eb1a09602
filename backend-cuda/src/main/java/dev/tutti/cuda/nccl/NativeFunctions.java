package dev.tutti.cuda.nccl;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.BackendException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;

/** A base class that finds functions of a library for the fields of its subclasses. */
abstract class NativeFunctions {
  private final SymbolLookup library;

  NativeFunctions(SymbolLookup library) {
    this.library = library;
  }

  private MemorySegment find(String name) {
    return library
        .find(name)
        .orElseThrow(() -> new BackendException("this NCCL library has no function " + name));
  }

  /** Finds a function that returns a result. */
  final MethodHandle function(String name, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(find(name), FunctionDescriptor.of(JAVA_INT, parameters));
  }

  /** Finds a function that returns the address of a string. */
  final MethodHandle text(String name, MemoryLayout parameter) {
    return Linker.nativeLinker()
        .downcallHandle(find(name), FunctionDescriptor.of(JAVA_LONG, parameter));
  }
}
