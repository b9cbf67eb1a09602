package dev.tutti.checkpoint.format;

import dev.tutti.DType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The header of a safetensors file (safetensors 0.7, {@code tensor.rs}): eight bytes of length,
 * little-endian, then JSON that names each tensor with its type, shape and range of bytes. The data
 * follow, little-endian, in row-major order, without a hole.
 */
public final class Safetensors {
  /** The most bytes of JSON that a file may have. */
  public static final long LONGEST_HEADER = 100_000_000;

  /** The number of bytes that hold the length of the header. */
  public static final int LENGTH_BYTES = 8;

  /** The key that is no tensor. */
  public static final String METADATA = "__metadata__";

  /** Headers end at a multiple of this, so that data are aligned as pages are. */
  private static final int PAGE = 4096;

  private Safetensors() {}

  /**
   * A tensor to be written.
   *
   * @param name its key
   * @param dtype the element type
   * @param shape the sizes in elements, outermost first
   */
  public record Entry(String name, DType dtype, Shape shape) {
    /** Returns the number of bytes of the elements. */
    public long byteSize() {
      return shape.times(dtype.byteSize());
    }
  }

  /**
   * Returns entries in the order in which their data should follow each other: the largest elements
   * first, so that all are aligned, then by name.
   *
   * @param entries the tensors of a file
   */
  public static List<Entry> ordered(List<Entry> entries) {
    return entries.stream()
        .sorted(
            Comparator.comparingInt((Entry entry) -> -entry.dtype().byteSize())
                .thenComparing(Entry::name))
        .toList();
  }

  /**
   * Returns whether files can hold elements of a type.
   *
   * @param dtype the type
   */
  public static boolean supports(DType dtype) {
    return ElementType.of(dtype).isPresent();
  }

  /**
   * Returns the bytes that precede the data, with the length.
   *
   * @param entries the tensors in the order of their data, of supported types
   * @param metadata texts about the file
   * @throws IllegalArgumentException if the header would be longer than readers accept, or two
   *     entries have one name
   */
  public static ByteBuffer header(List<Entry> entries, Map<String, String> metadata) {
    Map<String, Object> json = new LinkedHashMap<>();
    if (!metadata.isEmpty()) {
      json.put(METADATA, metadata);
    }
    long start = 0;
    for (Entry entry : entries) {
      Map<String, Object> tensor = new LinkedHashMap<>();
      tensor.put("dtype", ElementType.of(entry.dtype()).orElseThrow().name());
      tensor.put("shape", entry.shape().sizes());
      tensor.put("data_offsets", List.of(start, start + entry.byteSize()));
      start += entry.byteSize();
      if (json.put(entry.name(), tensor) != null) {
        throw new IllegalArgumentException("two tensors are named '" + entry.name() + "'");
      }
    }
    byte[] text = JsonText.write(json).getBytes(StandardCharsets.UTF_8);
    int length = Math.ceilDiv(LENGTH_BYTES + text.length, PAGE) * PAGE;
    if (length - LENGTH_BYTES > LONGEST_HEADER) {
      throw new IllegalArgumentException(
          "a header of %d bytes is longer than readers accept: %d; divide the tensors among sections"
              .formatted(length, LONGEST_HEADER));
    }
    ByteBuffer header = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
    header.putLong(length - LENGTH_BYTES).put(text);
    while (header.hasRemaining()) {
      header.put((byte) ' ');
    }
    return header.flip();
  }

  /**
   * Returns the length of the JSON of a file.
   *
   * @param start the first {@link #LENGTH_BYTES} bytes
   * @param fileLength the length of the file in bytes
   * @throws MalformedException if the file is too short for it, or it is longer than is allowed
   */
  public static int headerLength(ByteBuffer start, long fileLength) throws MalformedException {
    long length = start.duplicate().order(ByteOrder.LITTLE_ENDIAN).getLong();
    if (length < 0 || length > LONGEST_HEADER) {
      throw new MalformedException(
          "a header of %s bytes, but %d are the most"
              .formatted(Long.toUnsignedString(length), LONGEST_HEADER));
    }
    if (length > fileLength - LENGTH_BYTES) {
      throw new MalformedException(
          "a header of %d bytes in a file of %d".formatted(length, fileLength));
    }
    return (int) length;
  }

  /**
   * Reads the tensors of a file, in the order of their data.
   *
   * @param json the header without its length
   * @param fileLength the length of the file in bytes
   * @throws MalformedException if the header is not as described, or its ranges are not exactly the
   *     data of the file
   */
  public static List<StoredTensor> tensors(ByteBuffer json, long fileLength)
      throws MalformedException {
    if (!json.hasRemaining() || json.get(json.position()) != '{') {
      throw new MalformedException("the header does not begin with {");
    }
    long base = LENGTH_BYTES + (long) json.remaining();
    List<StoredTensor> tensors = new ArrayList<>();
    Object all = JsonText.read(json);
    for (Map.Entry<?, ?> entry : ((Map<?, ?>) require(all)).entrySet()) {
      String name = (String) require(entry.getKey());
      if (name.equals(METADATA)) {
        requireTexts(entry.getValue());
      } else {
        tensors.add(tensor(name, entry.getValue(), base));
      }
    }
    tensors.sort(
        Comparator.comparingLong(StoredTensor::start).thenComparingLong(StoredTensor::byteSize));
    long end = base;
    for (StoredTensor tensor : tensors) {
      if (tensor.start() != end) {
        throw new MalformedException(
            "the data of tensor '%s' begin at byte %d of the file, not at %d, where those before it"
                    .formatted(tensor.name(), tensor.start(), end)
                + " end");
      }
      end += tensor.byteSize();
    }
    if (end != fileLength) {
      throw new MalformedException(
          "the data end at byte %d of the file, which has %d".formatted(end, fileLength));
    }
    return tensors;
  }

  private static Object require(@Nullable Object value) {
    return Objects.requireNonNull(value);
  }

  private static void requireTexts(@Nullable Object metadata) throws MalformedException {
    if (!(metadata instanceof Map<?, ?> map)
        || !map.values().stream().allMatch(String.class::isInstance)) {
      throw new MalformedException(METADATA + " has values other than texts");
    }
  }

  private static StoredTensor tensor(String name, @Nullable Object value, long base)
      throws MalformedException {
    if (!(value instanceof Map<?, ?> map)
        || !(map.get("dtype") instanceof String code)
        || map.size() != 3) {
      throw new MalformedException(
          "tensor '" + name + "' has other members than dtype, shape and data_offsets");
    }
    ElementType type = ElementType.named(code);
    Shape shape = sizes(name, "shape", map.get("shape"));
    List<Long> range = sizes(name, "data_offsets", map.get("data_offsets")).sizes();
    if (range.size() != 2 || range.get(0) > range.get(1)) {
      throw new MalformedException("tensor '%s' has the range %s".formatted(name, range));
    }
    long bytes = range.get(1) - range.get(0);
    if (bytes != byteSize(name, type, shape)) {
      throw new MalformedException(
          "tensor '%s' of type %s and shape %s cannot have %d bytes"
              .formatted(name, code, shape, bytes));
    }
    if (range.get(0) > Long.MAX_VALUE - base) {
      throw new MalformedException("tensor '" + name + "' begins at byte " + range.get(0));
    }
    return new StoredTensor(name, code, type.dtype(), shape, base + range.get(0), bytes);
  }

  private static long byteSize(String name, ElementType type, Shape shape)
      throws MalformedException {
    try {
      long bits = shape.times(type.bits());
      return bits % 8 == 0 ? bits / 8 : -1;
    } catch (ArithmeticException e) {
      throw new MalformedException(
          "tensor '%s' of shape %s has too many elements".formatted(name, shape));
    }
  }

  private static Shape sizes(String name, String what, @Nullable Object value)
      throws MalformedException {
    if (!(value instanceof List<?> list)
        || !list.stream().allMatch(size -> size instanceof Long number && number >= 0)) {
      throw new MalformedException(
          "tensor '%s' has a %s that is not a list of sizes".formatted(name, what));
    }
    return new Shape(list.stream().map(Long.class::cast).toList());
  }
}
