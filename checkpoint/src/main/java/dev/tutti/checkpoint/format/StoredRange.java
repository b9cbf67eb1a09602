package dev.tutti.checkpoint.format;

import dev.tutti.DType;

/**
 * A range of the elements of a tensor, in a file of a checkpoint.
 *
 * @param section the section of the contents, such as {@code model}
 * @param tensor the name of the whole tensor in its section
 * @param dtype the element type
 * @param shape the sizes of the whole tensor in elements
 * @param first the position of the first element in the whole tensor, in row-major order
 * @param count the number of elements
 * @param file the position of the file in {@link Manifest#files}
 * @param start the position of the first byte in the file
 */
public record StoredRange(
    String section,
    String tensor,
    DType dtype,
    Shape shape,
    long first,
    long count,
    int file,
    long start) {
  /** Returns the number of bytes of the elements. */
  public long byteSize() {
    return count * dtype.byteSize();
  }

  /** Returns the position of the first element after the range in the whole tensor. */
  public long end() {
    return first + count;
  }

  StoredRange inFile(int newFile) {
    return new StoredRange(section, tensor, dtype, shape, first, count, newFile, start);
  }
}
