package dev.tutti;

import dev.tutti.spi.Elements;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * A view of memory as an array of elements; it holds no data and computes nothing.
 *
 * {@snippet file="GroupSnippetsTest.java" region="tensor"}
 *
 * <p>A dense tensor is a {@link MemorySegment} with a shape and strides, both in elements. A sparse
 * tensor (COO) holds two dense tensors: {@code indices}, int64 of shape [sparse dims, nnz], and
 * {@code values}, of shape [nnz, dense dims...]. The segment of a tensor on a device other than the
 * host carries an address and a size, and must not be read on the host.
 *
 * <p>Tensors are immutable and are equal only to themselves; their memory is not. The {@code of}
 * and {@code copy} methods copy memory; the {@code wrap} methods view it. The owner of the segment
 * must keep it alive while an operation runs; a running operation holds on to the tensor, and
 * thereby to the segment.
 */
public final class Tensor {
  /** The way in which elements are stored. */
  public enum Layout {
    /** Elements at strides within one segment. */
    STRIDED,
    /** Coordinates and values. */
    SPARSE_COO
  }

  private static final int SHOWN = 16;
  private static final long FILLED_BLOCK = 64 * 1024;

  /**
   * The alignment in bytes of memory that this class allocates: a cache line, or an AVX-512 vector.
   */
  public static final long ALIGNMENT = 64;

  private final DType dtype;
  private final long[] shape;
  private final long[] strides;
  private final Device device;
  private final long numel;
  private final boolean contiguous;
  private final @Nullable MemorySegment segment;
  private final @Nullable Tensor indices;
  private final @Nullable Tensor values;

  private Tensor(DType dtype, long[] shape, long[] strides, Device device, MemorySegment segment) {
    this.dtype = dtype;
    this.shape = shape;
    this.strides = strides;
    this.device = device;
    this.numel = Shapes.numel(shape);
    this.contiguous = Shapes.isDense(shape, strides);
    this.indices = null;
    this.values = null;
    long needed = contiguous ? numel : Shapes.extent(shape, strides);
    boolean fits = segment.byteSize() / dtype.byteSize() >= needed;
    long bytes = fits ? needed * dtype.byteSize() : segment.byteSize();
    this.segment = segment.byteSize() == bytes ? segment : segment.asSlice(0, bytes);
    if (!fits) {
      throw new IllegalArgumentException(
          "segment has "
              + segment.byteSize()
              + " bytes, but "
              + this.describe()
              + " needs "
              + needed
              + " elements of "
              + dtype.byteSize()
              + " bytes");
    }
  }

  private Tensor(long[] shape, Tensor indices, Tensor values) {
    this.dtype = values.dtype;
    this.shape = shape;
    this.strides = new long[0];
    this.device = values.device;
    this.numel = Shapes.numel(shape);
    this.contiguous = false;
    this.segment = null;
    this.indices = indices;
    this.values = values;
  }

  /**
   * Allocates zeroed host memory, which is freed when no tensor uses it any longer. Memory of 32
   * KiB or more is placed where other ranks of the host can read it, if the module dev.tutti.cpu is
   * present and the system allows it.
   *
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first; none for a scalar
   */
  public static Tensor allocate(DType dtype, long... shape) {
    return wrap(TensorMemory.ALLOCATOR.allocate(bytesOf(dtype, shape), ALIGNMENT), dtype, shape);
  }

  /**
   * Allocates zeroed host memory that lives as long as an arena.
   *
   * @param arena the arena that owns the memory
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first; none for a scalar
   */
  public static Tensor allocate(Arena arena, DType dtype, long... shape) {
    return wrap(
        TensorMemory.ALLOCATOR.allocate(arena, bytesOf(dtype, shape), ALIGNMENT), dtype, shape);
  }

  /**
   * Allocates host memory for the given number of tensors of this type and shape, one after the
   * other.
   */
  Tensor allocateTimes(int count) {
    if (!device.isCpu() || segment == null) {
      throw new IllegalArgumentException(
          "only dense host tensors can be gathered into new memory, not " + describe());
    }
    long[] all = new long[shape.length + 1];
    all[0] = count;
    System.arraycopy(shape, 0, all, 1, shape.length);
    return allocate(dtype, all);
  }

  private static long bytesOf(DType dtype, long[] shape) {
    long numel = Shapes.numel(shape);
    if (numel > Long.MAX_VALUE / dtype.byteSize()) {
      throw new IllegalArgumentException("too many elements: " + Arrays.toString(shape));
    }
    return numel * dtype.byteSize();
  }

  /**
   * Returns a tensor that views host memory, without a copy.
   *
   * @param segment the memory, in native byte order and at least as long as the tensor
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first
   * @throws IllegalArgumentException if the segment is too short or a size is negative
   */
  public static Tensor wrap(MemorySegment segment, DType dtype, long... shape) {
    return new Tensor(dtype, shape.clone(), Shapes.denseStrides(shape), Device.CPU, segment);
  }

  /**
   * Returns a tensor that views memory of any device at any strides, without a copy.
   *
   * @param segment the memory, which starts at the first element
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first
   * @param strides the distances in elements, one for each size, not negative
   * @param device the device that holds the memory
   * @throws IllegalArgumentException if the segment is too short, or the sizes and strides do not
   *     match
   */
  public static Tensor wrap(
      MemorySegment segment, DType dtype, long[] shape, long[] strides, Device device) {
    if (shape.length != strides.length) {
      throw new IllegalArgumentException(
          "shape has " + shape.length + " dimensions, but strides has " + strides.length);
    }
    for (long stride : strides) {
      if (stride < 0) {
        throw new IllegalArgumentException("stride must not be negative: " + stride);
      }
    }
    return new Tensor(dtype, shape.clone(), strides.clone(), device, segment);
  }

  /**
   * Returns a tensor that views a buffer from its position to its limit, without a copy.
   *
   * @param buffer a buffer in native byte order; new buffers are not, see {@link ByteBuffer#order}
   * @param dtype the element type
   * @param shape the sizes in elements
   * @throws IllegalArgumentException if the buffer is too short, or is in another byte order and
   *     elements have several bytes
   */
  public static Tensor wrap(ByteBuffer buffer, DType dtype, long... shape) {
    if (dtype.byteSize() > 1 && buffer.order() != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          "buffer is "
              + buffer.order()
              + ", but tensors hold "
              + ByteOrder.nativeOrder()
              + "; call order(ByteOrder.nativeOrder()) before filling it");
    }
    return wrap(MemorySegment.ofBuffer(buffer), dtype, shape);
  }

  /**
   * Returns a one-dimensional float32 tensor that views an array, without a copy: whatever a group
   * writes is in the array.
   *
   * @param elements the array
   */
  public static Tensor wrap(float[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.FLOAT32, elements.length);
  }

  /**
   * Returns a one-dimensional float64 tensor that views an array, without a copy: whatever a group
   * writes is in the array.
   *
   * @param elements the array
   */
  public static Tensor wrap(double[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.FLOAT64, elements.length);
  }

  /**
   * Returns a one-dimensional int32 tensor that views an array, without a copy: whatever a group
   * writes is in the array.
   *
   * @param elements the array
   */
  public static Tensor wrap(int[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.INT32, elements.length);
  }

  /**
   * Returns a one-dimensional int64 tensor that views an array, without a copy: whatever a group
   * writes is in the array.
   *
   * @param elements the array
   */
  public static Tensor wrap(long[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.INT64, elements.length);
  }

  /**
   * Copies an array into new host memory, as float32.
   *
   * @param elements the elements
   */
  public static Tensor of(float... elements) {
    return copyOf(MemorySegment.ofArray(elements), DType.FLOAT32, elements.length);
  }

  /**
   * Copies an array into new host memory, as float64.
   *
   * @param elements the elements
   */
  public static Tensor of(double... elements) {
    return copyOf(MemorySegment.ofArray(elements), DType.FLOAT64, elements.length);
  }

  /**
   * Copies an array into new host memory, as int32.
   *
   * @param elements the elements
   */
  public static Tensor of(int... elements) {
    return copyOf(MemorySegment.ofArray(elements), DType.INT32, elements.length);
  }

  /**
   * Copies an array into new host memory, as int64.
   *
   * @param elements the elements
   */
  public static Tensor of(long... elements) {
    return copyOf(MemorySegment.ofArray(elements), DType.INT64, elements.length);
  }

  /**
   * Copies an array into new host memory, as uint8.
   *
   * @param elements the elements
   */
  public static Tensor ofUint8(byte... elements) {
    return copyOf(MemorySegment.ofArray(elements), DType.UINT8, elements.length);
  }

  /**
   * Copies an array into new host memory, converting elements to a type as {@link #setFloat} does.
   *
   * @param dtype the element type, neither complex nor opaque
   * @param elements the elements
   * @throws IllegalStateException if the type is complex or opaque
   */
  public static Tensor of(DType dtype, float... elements) {
    Tensor tensor = allocate(dtype, elements.length);
    tensor.copyFrom(elements);
    return tensor;
  }

  private static Tensor copyOf(MemorySegment source, DType dtype, long length) {
    Tensor tensor = allocate(dtype, length);
    MemorySegment.copy(source, 0, tensor.segment(), 0, source.byteSize());
    return tensor;
  }

  /**
   * Creates a sparse tensor (COO).
   *
   * @param indices the coordinates, int64 of shape [sparse dims, nnz], contiguous
   * @param values the values, of shape [nnz, dense dims...], contiguous, on the same device as the
   *     indices
   * @param shape the sizes of the whole tensor, sparse dims first
   * @throws IllegalArgumentException if the parts do not match
   */
  public static Tensor sparse(Tensor indices, Tensor values, long... shape) {
    if (indices.dtype != DType.INT64 || indices.dim() != 2 || !indices.contiguous) {
      throw new IllegalArgumentException(
          "indices must be contiguous int64 of shape [sparse dims, nnz], not "
              + indices.describe());
    }
    if (values.dim() < 1 || values.size(0) != indices.size(1) || !values.contiguous) {
      throw new IllegalArgumentException(
          "values must be contiguous with " + indices.size(1) + " rows, not " + values.describe());
    }
    int sparseDims = (int) indices.size(0);
    if (shape.length != sparseDims + values.dim() - 1
        || !Arrays.equals(shape, sparseDims, shape.length, values.shape, 1, values.dim())) {
      throw new IllegalArgumentException(
          "shape "
              + Arrays.toString(shape)
              + " does not fit "
              + sparseDims
              + " sparse dims and "
              + values.describe());
    }
    if (!indices.device.equals(values.device)) {
      throw new IllegalArgumentException(
          "indices are on " + indices.device + " but values on " + values.device);
    }
    return new Tensor(shape.clone(), indices, values);
  }

  /** Returns the element type. */
  public DType dtype() {
    return dtype;
  }

  /** Returns how elements are stored. */
  public Layout layout() {
    return segment == null ? Layout.SPARSE_COO : Layout.STRIDED;
  }

  /** Returns whether this is a sparse tensor. */
  public boolean isSparse() {
    return segment == null;
  }

  /** Returns the device. */
  public Device device() {
    return device;
  }

  /** Returns the number of dimensions. */
  public int dim() {
    return shape.length;
  }

  /** Returns a copy of the sizes in elements. */
  public long[] shape() {
    return shape.clone();
  }

  /**
   * Returns the size of one dimension, in elements.
   *
   * @param dimension the dimension, starting at 0
   * @throws IndexOutOfBoundsException if there is no such dimension
   */
  public long size(int dimension) {
    return shape[checked(dimension)];
  }

  /** Returns a copy of the strides in elements; empty for a sparse tensor. */
  public long[] strides() {
    return strides.clone();
  }

  /** Returns the number of elements, including the zeros of a sparse tensor. */
  public long numel() {
    return numel;
  }

  /** Returns the size of the elements in bytes, without gaps. */
  public long byteSize() {
    return numel * dtype.byteSize();
  }

  /** Returns whether the elements are adjacent, in row-major order. */
  public boolean isContiguous() {
    return contiguous;
  }

  /**
   * Returns the memory, whose first and last bytes are those of the first and last elements. For a
   * contiguous tensor, it has {@link #byteSize()} bytes. Otherwise, it also has the gaps between
   * elements, and fewer bytes where elements share memory.
   *
   * @throws IllegalStateException if the tensor is sparse
   */
  public MemorySegment segment() {
    if (segment == null) {
      throw new IllegalStateException("a sparse tensor has no single segment: " + describe());
    }
    return segment;
  }

  /**
   * Returns the coordinates, int64 of shape [sparse dims, nnz].
   *
   * @throws IllegalStateException if the tensor is dense
   */
  public Tensor indices() {
    if (indices == null) {
      throw new IllegalStateException("a dense tensor has no indices: " + describe());
    }
    return indices;
  }

  /**
   * Returns the values, of shape [nnz, dense dims...].
   *
   * @throws IllegalStateException if the tensor is dense
   */
  public Tensor values() {
    if (values == null) {
      throw new IllegalStateException("a dense tensor has no values: " + describe());
    }
    return values;
  }

  /** Returns whether another tensor has the same sizes. */
  public boolean sameShape(Tensor other) {
    return Arrays.equals(shape, other.shape);
  }

  /**
   * Returns a view of the same elements with another shape.
   *
   * @param newShape the sizes, with the same number of elements in all
   * @throws IllegalArgumentException if the number of elements differs, or this tensor is not
   *     contiguous
   */
  public Tensor view(long... newShape) {
    requireContiguous("view");
    if (Shapes.numel(newShape) != numel) {
      throw new IllegalArgumentException(
          "cannot view " + describe() + " as " + Arrays.toString(newShape));
    }
    return new Tensor(dtype, newShape.clone(), Shapes.denseStrides(newShape), device, segment());
  }

  /**
   * Returns a view of the same bytes as elements of another type of equal size, for example of a
   * float8 type as uint8.
   *
   * @param type the element type of the view
   * @throws IllegalArgumentException if its elements have another size
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor view(DType type) {
    if (type.byteSize() != dtype.byteSize()) {
      throw new IllegalArgumentException(
          "cannot view %s as %s: elements of %d bytes are not elements of %d"
              .formatted(describe(), type.label(), dtype.byteSize(), type.byteSize()));
    }
    return new Tensor(type, shape, strides, device, segment());
  }

  /** Returns a one-dimensional view of the same elements. */
  public Tensor flatten() {
    return view(numel);
  }

  /**
   * Returns a view of a complex tensor as real numbers with a last dimension of two, or this tensor
   * if it is not complex (c10d's {@code view_as_real}).
   *
   * @throws IllegalStateException if the tensor is sparse and complex
   */
  public Tensor viewAsReal() {
    if (!dtype.isComplex()) {
      return this;
    }
    MemorySegment memory = segment();
    long[] realShape = Arrays.copyOf(shape, shape.length + 1);
    long[] realStrides = new long[strides.length + 1];
    for (int i = 0; i < strides.length; i++) {
      realStrides[i] = strides[i] * 2;
    }
    realShape[shape.length] = 2;
    realStrides[shape.length] = 1;
    return new Tensor(dtype.toReal(), realShape, realStrides, device, memory);
  }

  /**
   * Returns a view of a range of one dimension.
   *
   * @param dimension the dimension, starting at 0
   * @param start the first index
   * @param length the number of indices
   * @throws IndexOutOfBoundsException if there is no such dimension, or the range extends beyond it
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor narrow(int dimension, long start, long length) {
    MemorySegment memory = segment();
    if (start < 0 || length < 0 || start > shape[checked(dimension)] - length) {
      throw new IndexOutOfBoundsException(
          "range "
              + start
              + "+"
              + length
              + " exceeds dimension "
              + dimension
              + " of "
              + describe());
    }
    long[] narrowed = shape.clone();
    narrowed[dimension] = length;
    long offset = Shapes.numel(narrowed) == 0 ? 0 : start * strides[dimension] * dtype.byteSize();
    return new Tensor(dtype, narrowed, strides, device, memory.asSlice(offset));
  }

  /**
   * Returns a view of one index of a dimension; the view does not have that dimension.
   *
   * @param dimension the dimension, starting at 0
   * @param index the index, starting at 0
   * @throws IndexOutOfBoundsException if there is no such dimension, or the index is out of range
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor select(int dimension, long index) {
    Tensor row = narrow(dimension, index, 1);
    return new Tensor(
        dtype,
        Shapes.without(row.shape, dimension),
        Shapes.without(strides, dimension),
        device,
        row.segment());
  }

  /**
   * Returns a view of each index of a dimension, as {@link #select} does. For example, {@code
   * allocate(type, ranks, n).unbind(0)} creates a list with one tensor for each rank in a single
   * allocation.
   *
   * @param dimension the dimension, starting at 0
   * @return the views, in index order
   * @throws IndexOutOfBoundsException if there is no such dimension
   * @throws IllegalStateException if the tensor is sparse
   */
  public List<Tensor> unbind(int dimension) {
    Tensor[] views = new Tensor[Math.toIntExact(size(dimension))];
    for (int i = 0; i < views.length; i++) {
      views[i] = select(dimension, i);
    }
    return List.of(views);
  }

  /**
   * Returns a view with two dimensions exchanged.
   *
   * @param first one dimension, starting at 0
   * @param second the other dimension
   * @throws IndexOutOfBoundsException if there is no such dimension
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor transpose(int first, int second) {
    MemorySegment memory = segment();
    checked(first);
    checked(second);
    long[] newShape = shape.clone();
    long[] newStrides = strides.clone();
    newShape[first] = shape[second];
    newShape[second] = shape[first];
    newStrides[first] = strides[second];
    newStrides[second] = strides[first];
    return new Tensor(dtype, newShape, newStrides, device, memory);
  }

  /**
   * Copies the elements of another tensor, in row-major order of both tensors.
   *
   * @param source a tensor of the same type and number of elements; either tensor may be strided,
   *     but strided tensors must not overlap
   * @throws IllegalArgumentException if the types or the numbers of elements differ
   * @throws IllegalStateException if either tensor is sparse or not on the host
   */
  public void copyFrom(Tensor source) {
    requireHost("copyFrom");
    source.requireHost("copyFrom");
    if (source.dtype != dtype || source.numel != numel) {
      throw new IllegalArgumentException("cannot copy " + source.describe() + " to " + describe());
    }
    StridedCopy.copy(source, this);
  }

  /**
   * Returns this tensor if it is contiguous, or else a contiguous copy in new host memory.
   *
   * @throws IllegalStateException if a copy is needed, and the tensor is sparse or on a device
   */
  public Tensor contiguous() {
    return contiguous ? this : copy();
  }

  /**
   * Returns a contiguous copy in new host memory.
   *
   * @throws IllegalStateException if the tensor is sparse or on a device
   */
  public Tensor copy() {
    requireHost("copy");
    Tensor copy = allocate(dtype, shape);
    copy.copyFrom(this);
    return copy;
  }

  /**
   * Sets every element to a number, as {@link #setDouble} does.
   *
   * @param value the number
   * @return this tensor
   * @throws IllegalStateException if the type is complex or opaque
   */
  public Tensor fill(double value) {
    requireHost("fill");
    long singles = singles();
    for (long i = 0; i < singles; i++) {
      Elements.setDouble(dtype, segment(), offsetOf(i), value);
    }
    repeatFirst();
    return this;
  }

  /**
   * Sets every element to an integer, as {@link #setLong} does.
   *
   * @param value the number
   * @return this tensor
   * @throws IllegalStateException if the type is neither an integer type nor bool
   */
  public Tensor fillLong(long value) {
    requireHost("fillLong");
    long singles = singles();
    for (long i = 0; i < singles; i++) {
      Elements.setLong(dtype, segment(), offsetOf(i), value);
    }
    repeatFirst();
    return this;
  }

  /**
   * Reads an element as a double; an int64 that needs more than 53 bits is rounded.
   *
   * @param index the position in row-major order, starting at 0
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is complex, in which case {@link #viewAsReal} helps,
   *     or opaque, in which case {@link #view(DType)} does
   */
  public double getDouble(long index) {
    requireHost("getDouble");
    return Elements.getDouble(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element. A floating-point type rounds the number to nearest, an integer type
   * truncates it toward zero and keeps its low bits, and bool stores whether it is nonzero.
   *
   * @param index the position in row-major order, starting at 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is complex or opaque
   */
  public void setDouble(long index, double value) {
    requireHost("setDouble");
    Elements.setDouble(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Reads an element as {@link #getDouble} does, rounded to a float.
   *
   * @param index the position in row-major order, starting at 0
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is complex or opaque
   */
  public float getFloat(long index) {
    requireHost("getFloat");
    return (float) Elements.getDouble(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element as {@link #setDouble} does.
   *
   * @param index the position in row-major order, starting at 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is complex or opaque
   */
  public void setFloat(long index, float value) {
    requireHost("setFloat");
    Elements.setDouble(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Reads an element of an integer type or bool, exactly.
   *
   * @param index the position in row-major order, starting at 0
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is neither an integer type nor bool
   */
  public long getLong(long index) {
    requireHost("getLong");
    return Elements.getLong(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element of an integer type, keeping the low bits of the number, or of bool.
   *
   * @param index the position in row-major order, starting at 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is out of range
   * @throws IllegalStateException if the type is neither an integer type nor bool
   */
  public void setLong(long index, long value) {
    requireHost("setLong");
    Elements.setLong(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Copies the elements to an array, in row-major order, converting them as {@link #getFloat} does
   * unless they are float32.
   *
   * @param target an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyTo(float[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order, converting them as {@link #getDouble} does
   * unless they are float64.
   *
   * @param target an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyTo(double[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order.
   *
   * @param target an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than
   *     bool and the integer types of up to 32 bits
   */
  public void copyTo(int[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order.
   *
   * @param target an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyTo(long[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies an array to the elements, in row-major order, converting the numbers as {@link
   * #setFloat} does unless the elements are float32.
   *
   * @param source an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyFrom(float[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converting the numbers as {@link
   * #setDouble} does unless the elements are float64.
   *
   * @param source an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyFrom(double[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converting the numbers as {@link #setLong}
   * does unless the elements are int32.
   *
   * @param source an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyFrom(int[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converting the numbers as {@link #setLong}
   * does unless the elements are int64.
   *
   * @param source an array with as many elements as this tensor
   * @throws IllegalArgumentException if the numbers of elements differ
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyFrom(long[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Returns the elements as floats, in row-major order; see {@link #copyTo(float[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public float[] toFloatArray() {
    float[] result = new float[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /**
   * Returns the elements as doubles, in row-major order; see {@link #copyTo(double[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public double[] toDoubleArray() {
    double[] result = new double[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /**
   * Returns the elements of an integer or bool tensor, in row-major order; see {@link
   * #copyTo(long[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public long[] toLongArray() {
    long[] result = new long[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /**
   * Returns the elements of a bool tensor, or of an integer tensor of up to 32 bits, in row-major
   * order; see {@link #copyTo(int[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public int[] toIntArray() {
    int[] result = new int[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /** Returns how many elements a fill sets one by one before it calls {@link #repeatFirst}. */
  private long singles() {
    return contiguous ? Math.min(numel, 1) : numel;
  }

  /** Copies the first element of a contiguous tensor over the others, from a block in the cache. */
  private void repeatFirst() {
    if (!contiguous) {
      return;
    }
    MemorySegment all = segment();
    long bytes;
    for (long done = dtype.byteSize(); done < byteSize(); done += bytes) {
      bytes = Math.min(Math.min(done, FILLED_BLOCK), byteSize() - done);
      MemorySegment.copy(all, 0, all, done, bytes);
    }
  }

  private long offsetOf(long index) {
    if (index < 0 || index >= numel) {
      throw new IndexOutOfBoundsException("index " + index + " is outside " + describe());
    }
    if (contiguous) {
      return index * dtype.byteSize();
    }
    long rest = index;
    long offset = 0;
    for (int d = shape.length - 1; d >= 0; d--) {
      offset += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    return offset * dtype.byteSize();
  }

  private int checked(int dimension) {
    if (dimension < 0 || dimension >= shape.length) {
      throw new IndexOutOfBoundsException("no dimension " + dimension + " in " + describe());
    }
    return dimension;
  }

  private void requireContiguous(String what) {
    if (!contiguous) {
      throw new IllegalArgumentException(what + " needs a contiguous tensor, not " + describe());
    }
  }

  private void requireHost(String what) {
    if (!device.isCpu() || segment == null) {
      throw new IllegalStateException(what + " needs a dense host tensor, not " + describe());
    }
  }

  /** Describes the type, shape, strides and device, but not the elements; reads no memory. */
  public String describe() {
    return dtype.label()
        + Arrays.toString(shape)
        + (isSparse() ? " sparse" : contiguous ? "" : " strides " + Arrays.toString(strides))
        + " on "
        + device;
  }

  /**
   * Describes the tensor, as in {@code float32[2] on cpu [6.0, 4.0]}: the text of {@link
   * #describe()}, then the first 16 elements in row-major order if the tensor is dense, on the
   * host, and its memory can be read. Never throws.
   */
  @Override
  public String toString() {
    return device.isCpu() && segment != null ? describe() + elements() : describe();
  }

  private String elements() {
    try {
      StringJoiner text = new StringJoiner(", ", " [", "]");
      for (long i = 0; i < Math.min(numel, SHOWN); i++) {
        text.add(Elements.toString(dtype, segment(), offsetOf(i)));
      }
      return (numel > SHOWN ? text.add("...") : text).toString();
    } catch (RuntimeException | InternalError e) {
      // Freed memory, another thread's, or a file that was cut off.
      return "";
    }
  }
}
