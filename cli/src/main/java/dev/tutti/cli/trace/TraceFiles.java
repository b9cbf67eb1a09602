package dev.tutti.cli.trace;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.runtime.operation.FlightRecord;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.jspecify.annotations.Nullable;

/**
 * The reader of files of flight records, as JSON or pickle, from Tutti or PyTorch, and of JDK
 * recordings.
 */
final class TraceFiles {
  private static final Pattern RANK = Pattern.compile("(\\d+)(\\.json)?$");

  private static final String ALL = "0";

  private TraceFiles() {}

  /**
   * Reads files, and all files in folders. A pickle is read only if no other file has its rank,
   * since a JSON file contains more.
   *
   * @throws IllegalArgumentException naming a file that is none of these
   */
  static RankTrace read(List<Path> paths) throws IOException {
    RankTrace trace = RankTrace.empty();
    Map<Path, byte[]> pickles = new LinkedHashMap<>();
    for (Path path : expand(paths)) {
      byte[] head = head(path);
      if (head.length == 3 && new String(head, StandardCharsets.US_ASCII).equals("FLR")) {
        readRecording(path, trace);
      } else if (head.length > 0 && (head[0] & 0xff) == 0x80) {
        pickles.put(path, Files.readAllBytes(path));
      } else {
        add(path, () -> JsonReader.read(Files.readString(path)), trace);
      }
    }
    for (Map.Entry<Path, byte[]> pickle : pickles.entrySet()) {
      add(pickle.getKey(), () -> PickleReader.read(pickle.getValue()), trace);
    }
    return trace;
  }

  /** A reader of a value from a file. */
  private interface Reader {
    @Nullable Object read() throws IOException;
  }

  private static byte[] head(Path path) throws IOException {
    try (InputStream in = Files.newInputStream(path)) {
      return in.readNBytes(3);
    }
  }

  private static void add(Path path, Reader reader, RankTrace trace) throws IOException {
    try {
      add(reader.read(), path, trace);
    } catch (IllegalArgumentException | CharacterCodingException e) {
      throw new IllegalArgumentException(path + ": " + e.getMessage(), e);
    }
  }

  private static List<Path> expand(List<Path> paths) throws IOException {
    List<Path> all = new ArrayList<>();
    for (Path path : paths) {
      if (Files.isDirectory(path)) {
        try (Stream<Path> files = Files.list(path)) {
          // A rank that writes a record names it with a dot until it is complete.
          all.addAll(
              files
                  .filter(file -> !file.getFileName().toString().startsWith("."))
                  .filter(Files::isRegularFile)
                  .sorted()
                  .toList());
        }
      } else {
        all.add(path);
      }
    }
    return all;
  }

  private static void add(@Nullable Object value, Path path, RankTrace trace) {
    if (!(value instanceof Map<?, ?> record) || !(record.get("entries") instanceof List<?> all)) {
      throw new IllegalArgumentException("not a flight record: it has no entries");
    }
    int rank = record.get("rank") instanceof Long own ? own.intValue() : rankOf(path);
    if (trace.entries().containsKey(rank)) {
      return;
    }
    add(record, all, rank, trace);
  }

  /** Adds the content of a flight record. */
  static void add(Map<?, ?> record, List<?> all, int rank, RankTrace trace) {
    trace.addRank(rank);
    if (record.get("pg_config") instanceof Map<?, ?> groups) {
      groups.forEach(
          (name, config) -> {
            if (config instanceof Map<?, ?> fields) {
              trace.addGroup(String.valueOf(name), ranks(String.valueOf(fields.get("ranks"))));
            }
          });
    }
    for (Object each : all) {
      if (each instanceof Map<?, ?> fields) {
        trace.add(entry(rank, fields));
      }
    }
  }

  private static int rankOf(Path path) {
    Matcher end = RANK.matcher(String.valueOf(path.getFileName()));
    if (!end.find()) {
      throw new IllegalArgumentException("neither the file nor its name gives the rank");
    }
    return Integer.parseInt(end.group(1));
  }

  private static List<Integer> ranks(String text) {
    return Arrays.stream(text.replaceAll("[\\[\\]\\s]", "").split(","))
        .filter(each -> !each.isEmpty())
        .map(Integer::valueOf)
        .toList();
  }

  private static TraceEntry entry(int rank, Map<?, ?> fields) {
    boolean isMessage = Boolean.TRUE.equals(fields.get("is_p2p"));
    boolean isOfTorch = text(fields.get("op")).isEmpty();
    boolean isRetired = Boolean.TRUE.equals(fields.get("retired"));
    List<List<Long>> sizes = sizes(fields.get("input_sizes"));
    return new TraceEntry(
        rank,
        fields.get("process_group") instanceof List<?> names && !names.isEmpty()
            ? String.valueOf(names.getFirst())
            : "0",
        type(fields),
        number(fields.get(isMessage ? "p2p_seq_id" : "collective_seq_id"), 0),
        fields.get("input_dtypes") instanceof List<?> types && !types.isEmpty()
            ? String.valueOf(types.getFirst())
            : "",
        TraceEntry.numel(sizes),
        sizes.isEmpty() ? "" : String.valueOf(sizes.size() == 1 ? sizes.getFirst() : sizes),
        text(fields.get("reduce_op")),
        (int) number(fields.get(isMessage ? "peer" : "root"), -1),
        text(fields.get("path")),
        isOfTorch && isRetired ? TraceEntry.COMPLETED : text(fields.get("state")),
        number(fields.get("time_created_ns"), 0),
        number(fields.get("time_discovered_completed_ns"), 0),
        isOfTorch);
  }

  private static OpType type(Map<?, ?> fields) {
    String own = text(fields.get("op"));
    String name = own.isEmpty() ? text(fields.get("profiling_name")) : own;
    String bare = name.substring(name.indexOf(':') + 1).replaceAll(" .*", "");
    OpType known = labelled(bare);
    return known == OpType.UNKNOWN ? ofTorch(bare) : known;
  }

  private static OpType labelled(String label) {
    return Arrays.stream(OpType.values())
        .filter(type -> type.label().equals(label))
        .findFirst()
        .orElse(OpType.UNKNOWN);
  }

  private static OpType ofTorch(String name) {
    return switch (name) {
      case "all_reduce" -> OpType.ALL_REDUCE;
      case "allreduce_coalesced" -> OpType.ALL_REDUCE_COALESCED;
      case "all_gather" -> OpType.ALL_GATHER;
      case "_all_gather_base", "_allgather_base", "all_gather_single" -> OpType.ALL_GATHER_INTO;
      case "all_gather_into_tensor_coalesced", "ALLGATHER_coalesced" ->
          OpType.ALL_GATHER_INTO_COALESCED;
      case "reduce_scatter" -> OpType.REDUCE_SCATTER;
      case "_reduce_scatter_base", "reduce_scatter_single" -> OpType.REDUCE_SCATTER_INTO;
      case "reduce_scatter_tensor_coalesced", "REDUCE_SCATTER_coalesced" ->
          OpType.REDUCE_SCATTER_INTO_COALESCED;
      case "all_to_all", "all_to_all_single" -> OpType.ALL_TO_ALL_SINGLE;
      case "all_reduce_barrier" -> OpType.BARRIER;
      default -> OpType.UNKNOWN;
    };
  }

  private static List<List<Long>> sizes(@Nullable Object value) {
    List<List<Long>> all = new ArrayList<>();
    if (value instanceof List<?> tensors) {
      for (Object tensor : tensors) {
        if (tensor instanceof List<?> shape) {
          all.add(shape.stream().map(size -> number(size, 0)).toList());
        }
      }
    }
    return all;
  }

  private static String text(@Nullable Object value) {
    return value instanceof String text ? text : "";
  }

  private static long number(@Nullable Object value, long otherwise) {
    return value instanceof Number number ? number.longValue() : otherwise;
  }

  private static void readRecording(Path path, RankTrace trace) throws IOException {
    List<RecordedEvent> events = RecordingFile.readAllEvents(path);
    // Events hold the rank in their group; the global rank is the one in the group of all ranks.
    Set<Integer> ranks =
        events.stream()
            .filter(event -> event.getEventType().getName().startsWith("dev.tutti."))
            .filter(event -> event.hasField("rank") && ALL.equals(event.getString("group")))
            .map(event -> event.getInt("rank"))
            .collect(Collectors.toSet());
    Set<List<Object>> read = new HashSet<>();
    for (RecordedEvent event : events) {
      boolean isMessage = event.getEventType().getName().equals("dev.tutti.Message");
      if (isMessage || event.getEventType().getName().equals("dev.tutti.Operation")) {
        int own = event.getInt("rank");
        boolean isOfAll = ALL.equals(event.getString("group"));
        TraceEntry entry =
            ofEvent(event, isOfAll || ranks.size() != 1 ? own : ranks.iterator().next(), isMessage);
        read.add(key(entry));
        trace.add(entry);
      }
    }
    Set<Integer> inFile = new HashSet<>(ranks);
    read.forEach(key -> inFile.add((Integer) key.getFirst()));
    readPauses(events, inFile, trace);
    Map<List<Object>, TraceEntry> records = readRecords(events, trace);
    records.keySet().removeAll(read);
    records.values().forEach(trace::add);
  }

  /** Reads the garbage collector's pauses, which stop all ranks of the process. */
  private static void readPauses(List<RecordedEvent> events, Set<Integer> ranks, RankTrace trace) {
    Map<Integer, String> causes = new HashMap<>();
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("jdk.GarbageCollection")) {
        causes.put(event.getInt("gcId"), event.getString("name") + ", " + event.getString("cause"));
      }
    }
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("jdk.GCPhasePause")) {
        String what =
            event.getString("name") + " (" + causes.getOrDefault(event.getInt("gcId"), "?") + ")";
        for (int rank : ranks) {
          long start = nanos(event.getStartTime());
          trace.pauses().add(new Pause(rank, start, nanos(event.getEndTime()), what));
        }
      }
    }
  }

  /** Reads the flight records in a recording; the last one of each operation counts. */
  private static Map<List<Object>, TraceEntry> readRecords(
      List<RecordedEvent> events, RankTrace trace) {
    Map<List<Object>, TraceEntry> latest = new LinkedHashMap<>();
    for (RecordedEvent event : events) {
      if (event.getEventType().getName().equals("dev.tutti.FlightRecord")) {
        int rank = event.getInt("globalRank");
        trace.addRank(rank);
        trace.addGroup(event.getString("group"), ranks(event.getString("ranks")));
        String json = text(event.getString("entry"));
        if (!json.isEmpty() && JsonReader.read(json) instanceof Map<?, ?> fields) {
          TraceEntry entry = asEvents(entry(rank, fields), fields);
          latest.put(key(entry), entry);
        }
      }
    }
    return latest;
  }

  private static List<Object> key(TraceEntry entry) {
    return List.of(entry.rank(), entry.group(), entry.isMessage(), entry.sequence());
  }

  /** Converts an entry to the form that events have, so that it can be compared with them. */
  private static TraceEntry asEvents(TraceEntry entry, Map<?, ?> fields) {
    boolean isRead = !entry.sizes().isEmpty();
    String name =
        isRead
            ? entry.dtype()
            : fields.get("output_dtypes") instanceof List<?> types && !types.isEmpty()
                ? String.valueOf(types.getFirst())
                : "";
    long numel = isRead ? entry.numel() : TraceEntry.numel(sizes(fields.get("output_sizes")));
    return Arrays.stream(DType.values())
        .filter(dtype -> FlightRecord.dtypeName(dtype).equals(name))
        .findFirst()
        .map(dtype -> entry.withBytes(dtype.label(), numel * dtype.byteSize()))
        .orElseGet(() -> entry.withBytes("", 0));
  }

  private static TraceEntry ofEvent(RecordedEvent event, int rank, boolean isMessage) {
    String dtype = text(event.getString("dtype"));
    long bytes = event.getLong("bytes");
    return new TraceEntry(
        rank,
        event.getString("group"),
        labelled(event.getString("type")),
        event.getLong("sequence"),
        dtype,
        bytes,
        TraceEntry.sizesOf(dtype, bytes),
        "",
        isMessage ? event.getInt("peer") : -1,
        text(event.getString("path")),
        event.getString("state").equals("COMPLETED") ? TraceEntry.COMPLETED : "started",
        nanos(event.getStartTime()),
        nanos(event.getEndTime()),
        false);
  }

  private static long nanos(Instant time) {
    return time.getEpochSecond() * 1_000_000_000 + time.getNano();
  }
}
