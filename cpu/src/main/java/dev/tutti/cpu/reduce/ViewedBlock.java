package dev.tutti.cpu.reduce;

import dev.tutti.ReduceOp;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Adds native memory to its accumulators in place, without copying it to an array.
 *
 * @param <B> the type of direct buffers of the elements
 */
abstract class ViewedBlock<B extends Buffer> extends ElementBlock {
  /*
   * HotSpot of JDK 25 vectorizes a loop that reads native memory and writes an array, but not one
   * that also writes native memory, because that might overlap what is read. For floats it does so
   * only through a direct buffer of floats: a segment reads them as the bits of an int, and that
   * conversion has no vector form (docs/performance-log.md). Buffers over the most recently added
   * segments are kept, two in each place, so that a sum creates none; the references are weak,
   * because a buffer keeps its memory from being freed.
   *
   * An index into a buffer becomes an address, and the compiler must see that the sum of two ints
   * in it cannot overflow before it turns the loop into vector code. Both ints are therefore kept
   * below limits that they have anyway: a buffer has less than 2 GiB.
   */
  static final int INDEX = (1 << 29) - 1;

  private static final int PLACE_BITS = 7;

  private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

  private final Function<ByteBuffer, B> elements;
  private final int unit;
  private final List<@Nullable WeakReference<View<B>>> views =
      new ArrayList<>(Collections.nCopies(2 << PLACE_BITS, null));

  private record View<B extends Buffer>(MemorySegment memory, B buffer) {
    /**
     * On their own, segments are equal only if they are the same view; this compares address, size
     * and scope.
     */
    boolean shows(MemorySegment other) {
      return memory.address() == other.address()
          && memory.byteSize() == other.byteSize()
          && memory.scope().equals(other.scope());
    }
  }

  /**
   * Creates a block.
   *
   * @param elements creates a view of bytes as elements
   * @param unit the size of an element in bytes
   */
  ViewedBlock(Function<ByteBuffer, B> elements, int unit) {
    this.elements = elements;
    this.unit = unit;
  }

  /** Combines the accumulators with a copy of memory. */
  abstract void combineCopied(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes);

  /** Adds to the accumulators; {@code count} is at least {@link VectorLoops#SHORTEST}. */
  abstract void add(B view, int from, int count);

  /** Sets the accumulators to sums; {@code count} is at least {@link VectorLoops#SHORTEST}. */
  abstract void sum(B left, int leftFrom, B right, int rightFrom, int count);

  @Override
  public final void combine(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
    if (isAddedInPlace(kind, memory, offset, bytes)) {
      add(view(memory), (int) (offset / unit), bytes / unit);
    } else {
      combineCopied(kind, memory, offset, bytes);
    }
  }

  @Override
  public final void loadCombined(
      ReduceOp.Kind kind,
      MemorySegment left,
      long leftOffset,
      MemorySegment right,
      long rightOffset,
      int bytes) {
    if (isAddedInPlace(kind, left, leftOffset, bytes)
        && isAddedInPlace(kind, right, rightOffset, bytes)) {
      int leftFrom = (int) (leftOffset / unit);
      sum(view(left), leftFrom, view(right), (int) (rightOffset / unit), bytes / unit);
    } else {
      super.loadCombined(kind, left, leftOffset, right, rightOffset, bytes);
    }
  }

  private boolean isAddedInPlace(ReduceOp.Kind kind, MemorySegment memory, long offset, int bytes) {
    return switch (kind) {
      case SUM, AVG, PREMUL_SUM ->
          memory.isNative()
              && bytes >= VectorLoops.SHORTEST * unit
              && memory.byteSize() <= Integer.MAX_VALUE
              && offset % unit == 0;
      default -> false;
    };
  }

  private B view(MemorySegment memory) {
    int place = (int) ((memory.address() * SPREAD) >>> (Long.SIZE - PLACE_BITS)) * 2;
    View<B> view = kept(place);
    if (view == null || !view.shows(memory)) {
      view = kept(place + 1);
      if (view == null || !view.shows(memory)) {
        view = show(memory);
        views.set(place + 1, views.get(place));
        views.set(place, new WeakReference<>(view));
      }
    }
    return view.buffer;
  }

  private @Nullable View<B> kept(int place) {
    WeakReference<View<B>> reference = views.get(place);
    return reference == null ? null : reference.get();
  }

  private View<B> show(MemorySegment memory) {
    ByteBuffer bytes = memory.asByteBuffer().order(ByteOrder.nativeOrder());
    return new View<>(memory, elements.apply(bytes));
  }
}
