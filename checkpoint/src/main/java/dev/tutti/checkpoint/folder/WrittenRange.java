package dev.tutti.checkpoint.folder;

import dev.tutti.DType;
import dev.tutti.checkpoint.format.Shape;
import java.lang.foreign.MemorySegment;

/**
 * A range of the elements of a tensor that is to be written.
 *
 * @param tensor the name of the whole tensor in its section
 * @param dtype the element type
 * @param shape the sizes of the whole tensor in elements
 * @param first the position of the first element in the whole tensor
 * @param count the number of elements
 * @param bytes the elements, in native memory
 */
public record WrittenRange(
    String tensor, DType dtype, Shape shape, long first, long count, MemorySegment bytes) {
  private boolean isWhole() {
    return first == 0 && count == shape.times(1);
  }

  /** Returns the key in the file: the name, and the range unless it is the whole tensor. */
  String key() {
    return isWhole() ? tensor : "%s[%d:%d]".formatted(tensor, first, first + count);
  }

  /** Returns the shape in the file. */
  Shape storedShape() {
    return isWhole() ? shape : Shape.of(count);
  }
}
