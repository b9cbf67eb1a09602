package dev.tutti.spi;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Adds runs of elements where they are in memory, without arrays between. */
interface MemorySums {
  /*
   * The vector module incubates: it is there only if the program was started with --add-modules
   * jdk.incubator.vector, and may be another one in a later JDK. So the one class that uses it is
   * loaded only if it is there and links.
   *
   * Its loops work on addresses, since those over segments get slow when they see several kinds of
   * them (docs/performance-log.md). Nothing then keeps a thread from closing the arena, so only memory
   * is taken whose arena nobody can close.
   */

  /** Adds by the vector module, null without it. */
  @Nullable MemorySums VECTORS = find();

  private static @Nullable MemorySums find() {
    if (ModuleLayer.boot().findModule("jdk.incubator.vector").isEmpty()) {
      return null;
    }
    try {
      return new VectorSums();
    } catch (LinkageError e) {
      System.getLogger(MemorySums.class.getName())
          .log(System.Logger.Level.INFO, "sums go without the vector module of this JDK", e);
      return null;
    }
  }

  /**
   * Tells whether runs can be added here.
   *
   * @param kind the operator, defined on the type
   * @param dtype type of the elements, not complex
   */
  static boolean isSum(ReduceOp.Kind kind, DType dtype) {
    return switch (kind) {
      case SUM, AVG, PREMUL_SUM ->
          switch (dtype) {
            case FLOAT32, FLOAT64, INT32, INT64 -> true;
            default -> false;
          };
      default -> false;
    };
  }

  /**
   * Tells whether memory stays for as long as its segment is reachable, whatever others do: not of
   * a file, which they may cut off.
   */
  static boolean lasts(MemorySegment memory) {
    return memory.isNative() && !memory.isMapped() && Lasting.is(memory.scope());
  }

  /** Knows the scopes that nobody can close. */
  final class Lasting {
    private static final MemorySegment.Scope GLOBAL = Arena.global().scope();
    private static final Class<?> AUTOMATIC = Arena.ofAuto().scope().getClass();
    private static final boolean KNOWN = AUTOMATIC != closeable();

    private Lasting() {}

    private static Class<?> closeable() {
      try (Arena arena = Arena.ofShared()) {
        return arena.scope().getClass();
      }
    }

    static boolean is(MemorySegment.Scope scope) {
      return scope.equals(GLOBAL) || (KNOWN && scope.getClass() == AUTOMATIC);
    }
  }

  /**
   * Adds runs in the order of the array.
   *
   * @param dtype type of the elements, one of {@link #isSum}
   * @param inputs addresses of at least two runs
   * @param out address of what is written; may be one of the inputs
   * @param copy address where it is written too, or 0
   * @param bytes length of each, whole elements
   */
  void sum(DType dtype, long[] inputs, long out, long copy, long bytes);
}
