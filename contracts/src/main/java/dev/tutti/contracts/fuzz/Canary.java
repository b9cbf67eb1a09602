package dev.tutti.contracts.fuzz;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.contracts.ContractSubject;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** A tensor of a step, the memory around it, and what both must hold afterwards. */
final class Canary {
  private static final byte AROUND = (byte) 0xa5;

  /** The ways in which elements can lie in memory. */
  enum Layout {
    CONTIGUOUS,
    OFFSET,
    STRIDED,
    NARROWED,
    TRANSPOSED,
    HEAP;

    boolean isContiguous() {
      return this == CONTIGUOUS || this == OFFSET || this == HEAP;
    }
  }

  private final String what;
  private final ContractSubject subject;
  private final int width;
  private final Layout layout;
  private final int rows;
  private final int columns;
  private final Tensor base;
  private final Tensor view;

  /**
   * Creates a tensor with rows and columns, or a vector if there is only one row.
   *
   * @param what the name of the tensor in messages
   * @param content the elements, row by row
   */
  Canary(
      String what,
      ContractSubject subject,
      Layout layout,
      DType dtype,
      int rows,
      int columns,
      byte[] content) {
    this.what = what;
    this.subject = subject;
    this.layout = layout;
    this.width = dtype.byteSize();
    this.rows = rows;
    this.columns = columns;
    Tensor host = Tensor.allocate(dtype, baseShape());
    MemorySegment.copy(image(content), 0, host.segment(), JAVA_BYTE, 0, (int) host.byteSize());
    if (layout == Layout.HEAP) {
      long[] array = new long[(int) (host.byteSize() + 7) / 8];
      base = Tensor.wrap(MemorySegment.ofArray(array), dtype, baseShape());
      base.copyFrom(host);
    } else {
      base = subject.allocate(dtype, baseShape());
      subject.copyIn(host, base);
    }
    view = view();
  }

  Tensor tensor() {
    return view;
  }

  private int dimensions() {
    return rows == 1 ? 1 : 2;
  }

  private long[] baseShape() {
    boolean vector = rows == 1;
    return switch (layout) {
      case CONTIGUOUS, HEAP -> vector ? new long[] {columns} : new long[] {rows, columns};
      case OFFSET -> new long[] {(long) rows * columns + 4};
      case STRIDED -> vector ? new long[] {columns, 2} : new long[] {rows, columns, 2};
      case NARROWED -> vector ? new long[] {columns + 3} : new long[] {rows, columns + 3};
      case TRANSPOSED -> vector ? new long[] {columns} : new long[] {columns, rows};
    };
  }

  private Tensor view() {
    long[] shape = rows == 1 ? new long[] {columns} : new long[] {rows, columns};
    return switch (layout) {
      case CONTIGUOUS, HEAP -> base;
      case OFFSET -> base.narrow(0, 1, (long) rows * columns).view(shape);
      case STRIDED -> base.select(dimensions(), 1);
      case NARROWED -> base.narrow(dimensions() - 1, 2, columns);
      case TRANSPOSED -> rows == 1 ? base : base.transpose(0, 1);
    };
  }

  /** Returns the position in the base of an element of the view. */
  private int place(int row, int column) {
    return switch (layout) {
      case CONTIGUOUS, HEAP -> row * columns + column;
      case OFFSET -> 1 + row * columns + column;
      case STRIDED -> 1 + 2 * (row * columns + column);
      case NARROWED -> 2 + row * (columns + 3) + column;
      case TRANSPOSED -> column * rows + row;
    };
  }

  /** Returns the bytes of the base when the view has the given elements. */
  private byte[] image(byte[] content) {
    int numel = (int) Arrays.stream(baseShape()).reduce(1, (a, b) -> a * b);
    byte[] image = new byte[numel * width];
    Arrays.fill(image, AROUND);
    if (layout.isContiguous()) {
      System.arraycopy(content, 0, image, place(0, 0) * width, content.length);
      return image;
    }
    for (int row = 0, at = 0; row < rows; row++) {
      for (int column = 0; column < columns; column++, at += width) {
        int to = place(row, column) * width;
        for (int k = 0; k < width; k++) {
          image[to + k] = content[at + k];
        }
      }
    }
    return image;
  }

  /**
   * Compares the memory with what it must hold.
   *
   * @param expected the elements, or null if only the memory around them must be unchanged
   * @throws AssertionError describing the differences
   */
  void check(byte @Nullable [] expected) {
    byte[] actual = bytes(layout == Layout.HEAP ? base.copy() : subject.copyOut(base));
    byte[] content = expected == null ? new byte[rows * columns * width] : expected;
    byte[] image = image(content);
    if (expected == null) {
      byte[] inside = new byte[content.length];
      Arrays.fill(inside, (byte) 1);
      byte[] outside = image(new byte[content.length]);
      byte[] mask = image(inside);
      for (int i = 0; i < actual.length; i++) {
        actual[i] = mask[i] != outside[i] ? 0 : actual[i];
      }
    }
    int at = Arrays.mismatch(actual, image);
    if (at >= 0) {
      throw new AssertionError(describe(at, actual, image));
    }
  }

  private static byte[] bytes(Tensor host) {
    return host.segment().asSlice(0, host.byteSize()).toArray(JAVA_BYTE);
  }

  private String describe(int at, byte[] actual, byte[] expected) {
    int element = at / width;
    String where = "outside the elements, at element " + element + " of the memory around them";
    for (int i = 0; i < rows * columns; i++) {
      if (place(i / columns, i % columns) == element) {
        where = "element " + i;
        break;
      }
    }
    int from = element * width;
    int wrong = 0;
    for (int i = 0; i < actual.length; i += width) {
      wrong += Arrays.equals(actual, i, i + width, expected, i, i + width) ? 0 : 1;
    }
    return "%s: %s is %s, expected %s; %s of %s differ; %s %s"
        .formatted(
            what,
            where,
            hex(actual, from, width),
            hex(expected, from, width),
            wrong,
            actual.length / width,
            layout,
            view.describe());
  }

  private static String hex(byte[] bytes, int from, int count) {
    StringBuilder text = new StringBuilder("0x");
    for (int i = count - 1; i >= 0; i--) {
      text.append("%02x".formatted(bytes[from + i]));
    }
    return text.toString();
  }
}
