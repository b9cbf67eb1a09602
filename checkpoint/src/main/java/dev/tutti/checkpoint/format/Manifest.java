package dev.tutti.checkpoint.format;

import dev.tutti.DType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * What a checkpoint consists of: its files with their checksums, where each range of each tensor
 * is, counters, and the values of each rank. As text it is one JSON object, whose last member is
 * the SHA-256 of all bytes before that member. A rank describes what it wrote as a manifest, too.
 *
 * @param step the step of training after which it was saved
 * @param ranks how many ranks saved it
 * @param files the files, except for this one
 * @param ranges the ranges of tensors in them
 * @param counters the counters of each section
 * @param values the values of each name, one for each rank
 */
public record Manifest(
    long step,
    int ranks,
    List<FileRecord> files,
    List<StoredRange> ranges,
    SortedMap<String, Map<String, Long>> counters,
    SortedMap<String, List<String>> values) {
  private static final String FORMAT = "tutti-checkpoint-1";
  private static final String DIGEST_MEMBER = ",\"sha256\":\"";
  private static final int DIGEST_CHARACTERS = 64;
  private static final String END = "\"}\n";

  /** The number of bytes at the end of a manifest that {@link #requireEnd} checks. */
  public static final int END_BYTES = DIGEST_MEMBER.length() + DIGEST_CHARACTERS + END.length();

  private static final Pattern FILE = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]*");

  /** Copies the lists. */
  public Manifest {
    files = List.copyOf(files);
    ranges = List.copyOf(ranges);
  }

  /**
   * Joins what the ranks wrote.
   *
   * @param parts the manifests of all ranks, in the order of ranks, with the same step and counters
   */
  public static Manifest join(List<Manifest> parts) {
    List<FileRecord> files = new ArrayList<>();
    List<StoredRange> ranges = new ArrayList<>();
    SortedMap<String, List<String>> values = new TreeMap<>();
    for (Manifest part : parts) {
      int before = files.size();
      files.addAll(part.files);
      part.ranges.forEach(range -> ranges.add(range.inFile(before + range.file())));
      part.values.forEach(
          (name, own) -> values.computeIfAbsent(name, key -> new ArrayList<>()).addAll(own));
    }
    Manifest first = parts.getFirst();
    return new Manifest(first.step, parts.size(), files, ranges, first.counters, values);
  }

  /**
   * Returns this manifest with another file.
   *
   * @param file the file, in which there is no range
   */
  public Manifest with(FileRecord file) {
    List<FileRecord> more = new ArrayList<>(files);
    more.add(file);
    return new Manifest(step, ranks, more, ranges, counters, values);
  }

  /** Returns the text, in UTF-8. */
  public byte[] encode() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("format", FORMAT);
    json.put("step", step);
    json.put("ranks", ranks);
    json.put("files", files.stream().map(Manifest::json).toList());
    json.put("tensors", ranges.stream().map(Manifest::json).toList());
    json.put("counters", counters);
    json.put("values", values);
    String text = JsonText.write(json);
    String digested = text.substring(0, text.length() - 1);
    return (digested + DIGEST_MEMBER + Sha256.of(digested.getBytes(StandardCharsets.UTF_8)) + END)
        .getBytes(StandardCharsets.UTF_8);
  }

  private static Map<String, Object> json(FileRecord file) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("name", file.name());
    json.put("length", file.length());
    json.put("crc32c", file.checksums().stream().map(Integer::toHexString).toList());
    return json;
  }

  private static Map<String, Object> json(StoredRange range) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("section", range.section());
    json.put("name", range.tensor());
    json.put("dtype", range.dtype().label());
    json.put("shape", range.shape().sizes());
    json.put("first", range.first());
    json.put("count", range.count());
    json.put("file", range.file());
    json.put("start", range.start());
    return json;
  }

  /**
   * Reads a text.
   *
   * @param utf8 the text in UTF-8
   * @throws MalformedException if a byte has changed, or it is no manifest of this version
   */
  public static Manifest decode(byte[] utf8) throws MalformedException {
    int end = Math.max(0, utf8.length - END_BYTES);
    String digest = requireEnd(Arrays.copyOfRange(utf8, end, utf8.length));
    if (!digest.equals(Sha256.of(Arrays.copyOf(utf8, end)))) {
      throw new MalformedException("its SHA-256 is not that of its content");
    }
    if (!(JsonText.read(ByteBuffer.wrap(utf8)) instanceof Map<?, ?> json)
        || !FORMAT.equals(json.get("format"))) {
      throw new MalformedException("not of the format " + FORMAT);
    }
    return new Fields(json).manifest();
  }

  /**
   * Checks that a text ends as a manifest does, before all of it is read: it may have any length.
   *
   * @param end its last {@link #END_BYTES} bytes, or all if it has fewer
   * @return the SHA-256 that stands there
   * @throws MalformedException if it does not
   */
  public static String requireEnd(byte[] end) throws MalformedException {
    String text = new String(end, StandardCharsets.ISO_8859_1);
    if (end.length < END_BYTES || !text.startsWith(DIGEST_MEMBER) || !text.endsWith(END)) {
      throw new MalformedException("it does not end with a SHA-256");
    }
    return text.substring(DIGEST_MEMBER.length(), END_BYTES - END.length());
  }

  /** The members of a JSON object, read with their types. */
  private record Fields(Map<?, ?> json) {
    Manifest manifest() throws MalformedException {
      List<FileRecord> files = new ArrayList<>();
      for (Fields file : objects("files")) {
        files.add(file.file());
      }
      List<StoredRange> ranges = new ArrayList<>();
      for (Fields range : objects("tensors")) {
        ranges.add(range.range(files));
      }
      SortedMap<String, Map<String, Long>> counters = new TreeMap<>();
      Fields sections = new Fields(get("counters", Map.class));
      for (String section : sections.names()) {
        Fields numbers = new Fields(sections.get(section, Map.class));
        Map<String, Long> counted = new TreeMap<>();
        for (String counter : numbers.names()) {
          counted.put(counter, numbers.get(counter, Long.class));
        }
        counters.put(section, counted);
      }
      int ranks = count("ranks");
      SortedMap<String, List<String>> values = new TreeMap<>();
      Fields named = new Fields(get("values", Map.class));
      for (String name : named.names()) {
        values.put(name, named.list(name, String.class));
      }
      return new Manifest(number("step"), ranks, files, ranges, counters, values);
    }

    private FileRecord file() throws MalformedException {
      String name = get("name", String.class);
      if (!FILE.matcher(name).matches()) {
        throw new MalformedException("a file is named '" + name + "'");
      }
      List<Integer> checksums = new ArrayList<>();
      for (String text : list("crc32c", String.class)) {
        try {
          checksums.add(Integer.parseUnsignedInt(text, 16));
        } catch (NumberFormatException e) {
          throw new MalformedException("file '" + name + "' has the checksum '" + text + "'");
        }
      }
      if (checksums.size() != FileRecord.pieces(number("length"))) {
        throw new MalformedException(
            "file '%s' of %d bytes has %d checksums"
                .formatted(name, number("length"), checksums.size()));
      }
      return new FileRecord(name, number("length"), checksums);
    }

    private StoredRange range(List<FileRecord> files) throws MalformedException {
      String name = get("name", String.class);
      DType dtype;
      try {
        dtype = DType.ofLabel(get("dtype", String.class));
      } catch (IllegalArgumentException e) {
        throw new MalformedException("tensor '" + name + "': " + e.getMessage());
      }
      Shape shape = new Shape(list("shape", Long.class));
      long first = number("first");
      long count = number("count");
      if (first > elements(name, shape) - count) {
        throw new MalformedException(
            "%d elements of tensor '%s' from %d on are outside its shape %s"
                .formatted(count, name, first, shape));
      }
      StoredRange range =
          new StoredRange(
              get("section", String.class),
              name,
              dtype,
              shape,
              first,
              count,
              count("file"),
              number("start"));
      if (range.file() >= files.size()
          || count > Long.MAX_VALUE / dtype.byteSize()
          || range.start() > files.get(range.file()).length() - range.byteSize()) {
        throw new MalformedException("a range of tensor '" + name + "' is outside its file");
      }
      if (range.start() % dtype.byteSize() != 0) {
        throw new MalformedException(
            "a range of tensor '%s' starts at byte %d".formatted(name, range.start()));
      }
      return range;
    }

    private static long elements(String name, Shape shape) throws MalformedException {
      try {
        if (shape.sizes().stream().allMatch(size -> size >= 0)) {
          return shape.times(1);
        }
      } catch (ArithmeticException e) {
        // The same message says it.
      }
      throw new MalformedException("tensor '%s' has the shape %s".formatted(name, shape));
    }

    private List<String> names() {
      return json.keySet().stream().map(String::valueOf).toList();
    }

    private <T> T get(String name, Class<T> type) throws MalformedException {
      return cast(name, json.get(name), type);
    }

    private static <T> T cast(String name, @Nullable Object value, Class<T> type)
        throws MalformedException {
      if (!type.isInstance(value)) {
        throw new MalformedException(
            "its member '" + name + "' is not a " + type.getSimpleName() + ": " + value);
      }
      return type.cast(value);
    }

    /** Returns a number of at least 0. */
    private long number(String name) throws MalformedException {
      long number = get(name, Long.class);
      if (number < 0) {
        throw new MalformedException("its member '" + name + "' is negative: " + number);
      }
      return number;
    }

    private int count(String name) throws MalformedException {
      long number = number(name);
      if (number > Integer.MAX_VALUE) {
        throw new MalformedException("its member '" + name + "' is too large: " + number);
      }
      return (int) number;
    }

    private <T> List<T> list(String name, Class<T> type) throws MalformedException {
      List<T> all = new ArrayList<>();
      for (Object element : get(name, List.class)) {
        all.add(cast(name, element, type));
      }
      return all;
    }

    private List<Fields> objects(String name) throws MalformedException {
      List<Fields> all = new ArrayList<>();
      for (Map<?, ?> element : list(name, Map.class)) {
        all.add(new Fields(element));
      }
      return all;
    }
  }
}
