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
 * Views memory as an array of elements; it holds no data and computes nothing.
 *
 * {@snippet file="GroupSnippetsTest.java" region="tensor"}
 *
 * <p>A dense tensor is a {@link MemorySegment} with shape and strides, both in elements. A sparse
 * one (COO) holds two dense tensors: {@code indices}, int64 of shape [sparse dims, nnz], and {@code
 * values}, of shape [nnz, dense dims...]. A tensor of a device other than the host has a segment
 * that carries address and size and must not be read on the host.
 *
 * <p>Tensors are immutable and equal only to themselves; their memory is not. {@code of} and {@code
 * copy} copy, {@code wrap} views. Whoever made the segment keeps it alive while an operation runs;
 * a running operation holds the tensor and with it the segment.
 */
public final class Tensor {
  /** Says how elements are stored. */
  public enum Layout {
    /** Elements at strides of one segment. */
    STRIDED,
    /** Coordinates and values. */
    SPARSE_COO
  }

  private static final int SHOWN = 16;

  /** Alignment in bytes of memory that this class allocates: a cache line, an AVX-512 vector. */
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
    this.numel = numelOf(shape);
    this.contiguous = isDense(shape, strides);
    this.indices = null;
    this.values = null;
    long needed = contiguous ? numel : extentOf(shape, strides);
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
    this.numel = numelOf(shape);
    this.contiguous = false;
    this.segment = null;
    this.indices = indices;
    this.values = values;
  }

  /**
   * Allocates zeroed host memory, freed when no tensor uses it any more. That of 32 KiB or more is
   * where other ranks of the host can read it, if the module dev.tutti.cpu is there and the system
   * allows it.
   *
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   */
  public static Tensor allocate(DType dtype, long... shape) {
    return wrap(TensorMemory.ALLOCATOR.allocate(bytesOf(dtype, shape), ALIGNMENT), dtype, shape);
  }

  /**
   * Allocates zeroed host memory that lives as long as an arena.
   *
   * @param arena owns the memory
   * @param dtype element type
   * @param shape sizes in elements, outermost first; none for a scalar
   */
  public static Tensor allocate(Arena arena, DType dtype, long... shape) {
    return wrap(
        TensorMemory.ALLOCATOR.allocate(arena, bytesOf(dtype, shape), ALIGNMENT), dtype, shape);
  }

  /** Allocates host memory for as many tensors of this type and shape, one after the other. */
  Tensor allocateTimes(int count) {
    if (!device.isCpu() || segment == null) {
      throw new IllegalArgumentException(
          "only dense host tensors are gathered into new memory, not " + describe());
    }
    long[] all = new long[shape.length + 1];
    all[0] = count;
    System.arraycopy(shape, 0, all, 1, shape.length);
    return allocate(dtype, all);
  }

  private static long bytesOf(DType dtype, long[] shape) {
    long numel = numelOf(shape);
    if (numel > Long.MAX_VALUE / dtype.byteSize()) {
      throw new IllegalArgumentException("too many elements: " + Arrays.toString(shape));
    }
    return numel * dtype.byteSize();
  }

  /**
   * Views host memory, without a copy.
   *
   * @param segment the memory, in native byte order; at least as long as the tensor
   * @param dtype element type
   * @param shape sizes in elements, outermost first
   * @throws IllegalArgumentException if the segment is too short or a size negative
   */
  public static Tensor wrap(MemorySegment segment, DType dtype, long... shape) {
    return new Tensor(dtype, shape.clone(), denseStrides(shape), Device.CPU, segment);
  }

  /**
   * Views memory of any device at any strides, without a copy.
   *
   * @param segment the memory, its first byte the first element's
   * @param dtype element type
   * @param shape sizes in elements, outermost first
   * @param strides distances in elements, one for each size, not negative
   * @param device where the memory is
   * @throws IllegalArgumentException if the segment is too short, or sizes and strides do not fit
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
   * Views a buffer from its position to its limit, without a copy.
   *
   * @param buffer a buffer in native byte order; new buffers are not, see {@link ByteBuffer#order}
   * @param dtype element type
   * @param shape sizes in elements
   * @throws IllegalArgumentException if the buffer is too short, or in another byte order while
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
   * Views an array as float32 of one dimension, without a copy: what a group writes is in the
   * array.
   *
   * @param elements the array
   */
  public static Tensor wrap(float[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.FLOAT32, elements.length);
  }

  /**
   * Views an array as float64 of one dimension, without a copy: what a group writes is in the
   * array.
   *
   * @param elements the array
   */
  public static Tensor wrap(double[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.FLOAT64, elements.length);
  }

  /**
   * Views an array as int32 of one dimension, without a copy: what a group writes is in the array.
   *
   * @param elements the array
   */
  public static Tensor wrap(int[] elements) {
    return wrap(MemorySegment.ofArray(elements), DType.INT32, elements.length);
  }

  /**
   * Views an array as int64 of one dimension, without a copy: what a group writes is in the array.
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
   * Copies an array into new host memory, converted to a type as {@link #setFloat} does.
   *
   * @param dtype element type, neither complex nor opaque
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
   * @param indices int64, contiguous, of shape [sparse dims, nnz]
   * @param values of shape [nnz, dense dims...], contiguous, on the device of the indices
   * @param shape sizes of the whole, sparse dims first
   * @throws IllegalArgumentException if the parts do not fit
   */
  public static Tensor sparse(Tensor indices, Tensor values, long... shape) {
    if (indices.dtype != DType.INT64 || indices.dimensions() != 2 || !indices.contiguous) {
      throw new IllegalArgumentException(
          "indices must be contiguous int64 of shape [sparse dims, nnz], not "
              + indices.describe());
    }
    if (values.dimensions() < 1 || values.size(0) != indices.size(1) || !values.contiguous) {
      throw new IllegalArgumentException(
          "values must be contiguous with " + indices.size(1) + " rows, not " + values.describe());
    }
    int sparseDims = (int) indices.size(0);
    if (shape.length != sparseDims + values.dimensions() - 1
        || !Arrays.equals(shape, sparseDims, shape.length, values.shape, 1, values.dimensions())) {
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

  /** Tells whether this is a sparse tensor. */
  public boolean isSparse() {
    return segment == null;
  }

  /** Returns the device. */
  public Device device() {
    return device;
  }

  /** Returns the number of dimensions. */
  public int dimensions() {
    return shape.length;
  }

  /** Returns a copy of the sizes in elements. */
  public long[] shape() {
    return shape.clone();
  }

  /**
   * Returns the size of one dimension, in elements.
   *
   * @param dimension from 0
   * @throws IndexOutOfBoundsException if there is no such dimension
   */
  public long size(int dimension) {
    return shape[checked(dimension)];
  }

  /** Returns a copy of the strides in elements; empty for a sparse tensor. */
  public long[] strides() {
    return strides.clone();
  }

  /** Returns the number of elements, counting the zeros of a sparse tensor. */
  public long numel() {
    return numel;
  }

  /** Returns the size of the elements in bytes, without gaps. */
  public long byteSize() {
    return numel * dtype.byteSize();
  }

  /** Tells whether the elements lie one after the other in row-major order. */
  public boolean isContiguous() {
    return contiguous;
  }

  /**
   * Returns the memory; its first byte is the first element's, and its last byte the last one's. So
   * it has {@link #byteSize()} bytes where the tensor is contiguous; else also the gaps between
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

  /** Tells whether another tensor has the same sizes. */
  public boolean sameShape(Tensor other) {
    return Arrays.equals(shape, other.shape);
  }

  /**
   * Views the same elements under another shape.
   *
   * @param newShape sizes with as many elements in all
   * @throws IllegalArgumentException if the number differs or this is not contiguous
   */
  public Tensor view(long... newShape) {
    requireContiguous("view");
    if (numelOf(newShape) != numel) {
      throw new IllegalArgumentException(
          "cannot view " + describe() + " as " + Arrays.toString(newShape));
    }
    return new Tensor(dtype, newShape.clone(), denseStrides(newShape), device, segment());
  }

  /**
   * Views the same bytes as elements of another type of equal size, as those of a float8 type as
   * uint8.
   *
   * @param type the type
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

  /** Views the same elements as one dimension. */
  public Tensor flatten() {
    return view(numel);
  }

  /**
   * Views a complex tensor as reals with a last dimension of two; any other as itself (c10d's
   * {@code view_as_real}).
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
   * Views a range of one dimension.
   *
   * @param dimension which, from 0
   * @param start first index
   * @param length number of indices
   * @throws IndexOutOfBoundsException if there is no such dimension, or the range leaves it
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor narrow(int dimension, long start, long length) {
    MemorySegment memory = segment();
    if (start < 0 || length < 0 || start > shape[checked(dimension)] - length) {
      throw new IndexOutOfBoundsException(
          "range " + start + "+" + length + " leaves dimension " + dimension + " of " + describe());
    }
    long[] narrowed = shape.clone();
    narrowed[dimension] = length;
    long offset = numelOf(narrowed) == 0 ? 0 : start * strides[dimension] * dtype.byteSize();
    return new Tensor(dtype, narrowed, strides, device, memory.asSlice(offset));
  }

  /**
   * Views one index of a dimension, which goes away.
   *
   * @param dimension which, from 0
   * @param index from 0
   * @throws IndexOutOfBoundsException if there is no such dimension, or the index is outside
   * @throws IllegalStateException if the tensor is sparse
   */
  public Tensor select(int dimension, long index) {
    Tensor row = narrow(dimension, index, 1);
    return new Tensor(
        dtype, without(row.shape, dimension), without(strides, dimension), device, row.segment());
  }

  /**
   * Views each index of a dimension, as {@link #select} does. {@code allocate(type, ranks,
   * n).unbind(0)} is one allocation for a list of a tensor for each rank.
   *
   * @param dimension which, from 0
   * @return the views, in order of the index
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
   * Views two dimensions exchanged.
   *
   * @param first one, from 0
   * @param second the other
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
   * Copies the elements of another tensor, in row-major order of both sides.
   *
   * @param source where from, with as many elements of the same type; either side may be strided,
   *     but strided sides must not overlap
   * @throws IllegalArgumentException if type or number of elements differ
   * @throws IllegalStateException if one is sparse or not on the host
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
   * Returns this tensor if it is contiguous, else a contiguous copy in new host memory.
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
    for (long i = 0; i < numel; i++) {
      Elements.setDouble(dtype, segment(), offsetOf(i), value);
    }
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
    for (long i = 0; i < numel; i++) {
      Elements.setLong(dtype, segment(), offsetOf(i), value);
    }
    return this;
  }

  /**
   * Reads an element as a double; an int64 of more than 53 bits is rounded.
   *
   * @param index place in row-major order, from 0
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is complex, where {@link #viewAsReal} helps, or
   *     opaque, where {@link #view(DType)} does
   */
  public double getDouble(long index) {
    requireHost("getDouble");
    return Elements.getDouble(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element: rounded to nearest on a floating-point type; truncated toward zero and cut
   * to its low bits on an integer type; on bool whether the number is not zero.
   *
   * @param index place in row-major order, from 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is complex or opaque
   */
  public void setDouble(long index, double value) {
    requireHost("setDouble");
    Elements.setDouble(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Reads an element as {@link #getDouble} does, rounded to a float.
   *
   * @param index place in row-major order, from 0
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is complex or opaque
   */
  public float getFloat(long index) {
    requireHost("getFloat");
    return (float) Elements.getDouble(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element as {@link #setDouble} does.
   *
   * @param index place in row-major order, from 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is complex or opaque
   */
  public void setFloat(long index, float value) {
    requireHost("setFloat");
    Elements.setDouble(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Reads an element of an integer type or bool, exactly.
   *
   * @param index place in row-major order, from 0
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is neither
   */
  public long getLong(long index) {
    requireHost("getLong");
    return Elements.getLong(dtype, segment(), offsetOf(index));
  }

  /**
   * Writes an element of an integer type, keeping the low bits, or of bool.
   *
   * @param index place in row-major order, from 0
   * @param value the number
   * @throws IndexOutOfBoundsException if the index is outside
   * @throws IllegalStateException if the type is neither
   */
  public void setLong(long index, long value) {
    requireHost("setLong");
    Elements.setLong(dtype, segment(), offsetOf(index), value);
  }

  /**
   * Copies the elements to an array, in row-major order, converted as {@link #getFloat} does unless
   * they are float32.
   *
   * @param target as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyTo(float[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order, converted as {@link #getDouble} does
   * unless they are float64.
   *
   * @param target as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyTo(double[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order.
   *
   * @param target as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than
   *     bool and the integer types of up to 32 bits
   */
  public void copyTo(int[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies the elements to an array, in row-major order.
   *
   * @param target as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyTo(long[] target) {
    ArrayCopy.copy(this, target);
  }

  /**
   * Copies an array to the elements, in row-major order, converted as {@link #setFloat} does unless
   * they are float32.
   *
   * @param source as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyFrom(float[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converted as {@link #setDouble} does
   * unless they are float64.
   *
   * @param source as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or complex or opaque
   */
  public void copyFrom(double[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converted as {@link #setLong} does unless
   * they are int32.
   *
   * @param source as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyFrom(int[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies an array to the elements, in row-major order, converted as {@link #setLong} does unless
   * they are int64.
   *
   * @param source as long as this tensor has elements
   * @throws IllegalArgumentException if it is not
   * @throws IllegalStateException if the tensor is sparse, on a device, or of a type other than an
   *     integer type or bool
   */
  public void copyFrom(long[] source) {
    ArrayCopy.copy(source, this);
  }

  /**
   * Copies the elements, in row-major order, as floats; see {@link #copyTo(float[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public float[] toFloatArray() {
    float[] result = new float[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /**
   * Copies the elements, in row-major order, as doubles; see {@link #copyTo(double[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public double[] toDoubleArray() {
    double[] result = new double[Math.toIntExact(numel)];
    copyTo(result);
    return result;
  }

  /**
   * Copies the elements of an integer or bool tensor, in row-major order; see {@link
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
   * Copies the elements of an integer or bool tensor of up to 32 bits, in row-major order; see
   * {@link #copyTo(int[])}.
   *
   * @throws IllegalStateException where {@code copyTo} throws it
   */
  public int[] toIntArray() {
    int[] result = new int[Math.toIntExact(numel)];
    copyTo(result);
    return result;
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

  /** Describes type, shape, strides and device, not the elements; reads no memory. */
  public String describe() {
    return dtype.label()
        + Arrays.toString(shape)
        + (isSparse() ? " sparse" : contiguous ? "" : " strides " + Arrays.toString(strides))
        + " on "
        + device;
  }

  /**
   * Describes the tensor, as in {@code float32[2] on cpu [6.0, 4.0]}: what {@link #describe()}
   * says, then the first 16 elements in row-major order if it is dense, on the host, and its memory
   * can be read. Never throws.
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

  private static long numelOf(long[] shape) {
    boolean empty = false;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("negative size in shape " + Arrays.toString(shape));
      }
      empty |= size == 0;
    }
    if (empty) {
      return 0;
    }
    try {
      long numel = 1;
      for (long size : shape) {
        numel = Math.multiplyExact(numel, size);
      }
      return numel;
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException("too many elements: " + Arrays.toString(shape), e);
    }
  }

  private static long[] denseStrides(long[] shape) {
    long[] strides = new long[shape.length];
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      strides[d] = stride;
      stride *= Math.max(1, shape[d]);
    }
    return strides;
  }

  private static boolean isDense(long[] shape, long[] strides) {
    long expected = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      if (shape[d] == 0) {
        return true;
      }
    }
    for (int d = shape.length - 1; d >= 0; d--) {
      if (shape[d] != 1 && strides[d] != expected) {
        return false;
      }
      expected *= shape[d];
    }
    return true;
  }

  private static long extentOf(long[] shape, long[] strides) {
    try {
      long last = 0;
      for (int d = 0; d < shape.length; d++) {
        last = Math.addExact(last, Math.multiplyExact(shape[d] - 1, strides[d]));
      }
      return Math.addExact(last, 1);
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "strides "
              + Arrays.toString(strides)
              + " of shape "
              + Arrays.toString(shape)
              + " reach too far",
          e);
    }
  }

  private static long[] without(long[] values, int index) {
    long[] rest = new long[values.length - 1];
    System.arraycopy(values, 0, rest, 0, index);
    System.arraycopy(values, index + 1, rest, index, rest.length - index);
    return rest;
  }
}
