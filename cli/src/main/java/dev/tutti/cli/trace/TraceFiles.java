package dev.tutti.cli.trace;

import dev.tutti.OpType;
import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.trace.TraceJobs.Part;
import dev.tutti.runtime.operation.RankProgress;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The reader of files of flight records, as JSON or pickle, from Tutti or PyTorch, or JFR. */
final class TraceFiles {
  private static final Pattern RANK = Pattern.compile("(\\d+)(\\.json)?$");

  private TraceFiles() {}

  /**
   * Reads files, and the records in folders and their subfolders; other files in folders are left
   * out, with a note. Of several records of a rank, the one with the newest operation counts, and
   * JSON before a pickle, which contains less. Records from before the last restart of the job are
   * left out, with a note. Recordings contain less of each operation than the records do; if there
   * are any, only what both have is compared.
   *
   * @throws IllegalArgumentException naming one of the given files that is no record, or the files
   *     of each job if there are several
   */
  static RankTrace read(List<Path> paths) throws IOException {
    RankTrace trace = RankTrace.empty();
    RankTrace records = RankTrace.empty();
    Map<Path, @Nullable Object> found = new LinkedHashMap<>();
    Map<Path, byte[]> pickles = new LinkedHashMap<>();
    List<Part> parts = new ArrayList<>();
    for (Path path : TraceFolders.expand(paths, trace.notes())) {
      byte[] head = read(path, () -> TraceFolders.head(path));
      if (head.length == 0) {
        trace.notes().add(path + " is empty: its rank was killed, or is still running");
      } else if (TraceFolders.isRecording(head)) {
        Part part = new Part(path.toString(), true, RankTrace.empty());
        if (orLeaveOut(path, paths, trace, () -> JdkRecording.read(path, part.trace()))) {
          parts.add(part);
          trace.addMissing(part.trace(), UnaryOperator.identity());
        }
      } else if (TraceFolders.isPickle(head)) {
        pickles.put(path, read(path, () -> Files.readAllBytes(path)));
      } else {
        orLeaveOut(
            path,
            paths,
            trace,
            () -> found.put(path, JsonReader.read(read(path, () -> Files.readString(path)))));
      }
    }
    for (Map.Entry<Path, byte[]> pickle : pickles.entrySet()) {
      Path path = pickle.getKey();
      orLeaveOut(path, paths, trace, () -> found.put(path, PickleReader.read(pickle.getValue())));
    }
    addLatest(found, paths, records, parts);
    TraceJobs.requireOne(parts);
    trace.addMissing(
        records, trace.entries().isEmpty() ? UnaryOperator.identity() : JdkRecording::asEvents);
    return trace;
  }

  /** A reader of a value from a file. */
  private interface Reader<T extends @Nullable Object> {
    T read() throws IOException;
  }

  /** Reads a file; failures name it. */
  private static <T extends @Nullable Object> T read(Path path, Reader<T> reader)
      throws IOException {
    try {
      return reader.read();
    } catch (FileSystemException | CharacterCodingException e) {
      throw e;
    } catch (IOException e) {
      throw (IOException)
          new FileSystemException(path.toString(), null, e.getMessage()).initCause(e);
    }
  }

  /** A step that reads or adds the content of a file. */
  private interface Step {
    void run() throws IOException;
  }

  /**
   * Takes a step; if the file is no record, leaves it out and returns false, unless it is one of
   * the given files.
   */
  private static boolean orLeaveOut(Path path, List<Path> given, RankTrace trace, Step step)
      throws IOException {
    Exception cause;
    String reason;
    try {
      step.run();
      return true;
    } catch (IllegalArgumentException e) {
      cause = e;
      reason = String.valueOf(e.getMessage());
    } catch (CharacterCodingException e) {
      cause = e;
      reason = "not a flight record: " + Reasons.of(e);
    }
    if (given.contains(path)) {
      throw new IllegalArgumentException(path + ": " + reason, cause);
    }
    trace.notes().add(path + " is left out: " + reason);
    return false;
  }

  /**
   * Adds the records of the job's last attempt, which is the one with the newest operation or, if a
   * record has none, the newest file; those of PyTorch do not say theirs.
   */
  private static void addLatest(
      Map<Path, @Nullable Object> found, List<Path> given, RankTrace trace, List<Part> parts)
      throws IOException {
    Map<Path, Long> times = new HashMap<>();
    for (Map.Entry<Path, @Nullable Object> each : found.entrySet()) {
      times.put(each.getKey(), newest(each.getKey(), each.getValue()));
    }
    long last = 0;
    long newest = Long.MIN_VALUE;
    for (Map.Entry<Path, @Nullable Object> each : found.entrySet()) {
      long restarts = restarts(each.getValue(), -1);
      if (restarts < 0) {
        continue;
      }
      long time = times.getOrDefault(each.getKey(), 0L);
      if (time > newest || (time == newest && restarts > last)) {
        newest = time;
        last = restarts;
      }
    }
    List<Map.Entry<Path, @Nullable Object>> newestFirst = new ArrayList<>(found.entrySet());
    newestFirst.sort(Comparator.comparingLong(each -> -times.getOrDefault(each.getKey(), 0L)));
    for (Map.Entry<Path, @Nullable Object> each : newestFirst) {
      long restarts = restarts(each.getValue(), last);
      if (restarts == last) {
        Path path = each.getKey();
        Part part = new Part(path.toString(), false, RankTrace.empty());
        if (orLeaveOut(path, given, trace, () -> add(each.getValue(), path, part.trace()))) {
          parts.add(part);
          if (!trace.entries().keySet().containsAll(part.trace().entries().keySet())) {
            trace.addMissing(part.trace(), UnaryOperator.identity());
          } else {
            trace.addFailures(part.trace());
          }
        }
      } else {
        trace
            .notes()
            .add(
                "%s is left out: it was written after %s, and others after %d"
                    .formatted(each.getKey(), Counts.of(restarts, "restart"), last));
      }
    }
  }

  private static long restarts(@Nullable Object record, long otherwise) {
    return record instanceof Map<?, ?> fields
        ? number(fields.get("restarts"), otherwise)
        : otherwise;
  }

  /** Returns when the newest operation of a record was created, or else when it was written. */
  private static long newest(Path path, @Nullable Object record) throws IOException {
    long newest = 0;
    if (record instanceof Map<?, ?> fields && fields.get("entries") instanceof List<?> all) {
      for (Object entry : all) {
        if (entry instanceof Map<?, ?> one) {
          newest = Math.max(newest, number(one.get("time_created_ns"), 0));
        }
      }
    }
    return newest > 0 ? newest : Files.getLastModifiedTime(path).to(TimeUnit.NANOSECONDS);
  }

  private static void add(@Nullable Object value, Path path, RankTrace trace) {
    if (!(value instanceof Map<?, ?> record) || !(record.get("entries") instanceof List<?> all)) {
      throw new IllegalArgumentException("not a flight record: it has no entries");
    }
    add(record, all, record.get("rank") instanceof Long own ? rank(own) : rankOf(path), trace);
  }

  /** Adds the content of a flight record. */
  static void add(Map<?, ?> record, List<?> all, int rank, RankTrace trace) {
    trace.addRank(rank);
    if (record.get("pg_config") instanceof Map<?, ?> groups) {
      groups.forEach(
          (name, config) -> {
            if (config instanceof Map<?, ?> fields && fields.get("ranks") != null) {
              trace.addGroup(String.valueOf(name), ranks(String.valueOf(fields.get("ranks"))));
            }
          });
    }
    if (record.get("failures") instanceof Map<?, ?> failures) {
      failures.forEach((group, failure) -> addFailure(group.toString(), failure, rank, trace));
    }
    int others = 0;
    for (Object each : all) {
      if (each instanceof Map<?, ?> fields && !name(fields).isEmpty()) {
        trace.add(entry(rank, fields));
      } else {
        others++;
      }
    }
    if (others > 0) {
      trace.notes().add("rank " + rank + " has entries that name no operation: " + others);
    }
  }

  private static void addFailure(String group, Object failure, int rank, RankTrace trace) {
    try {
      if (failure instanceof Map<?, ?> fields) {
        trace
            .failures()
            .computeIfAbsent(group, _ -> new TreeMap<>())
            .put(rank, Replay.Failure.of(fields));
      }
    } catch (IllegalArgumentException e) {
      trace
          .notes()
          .add(
              "rank %d: the failure of group %s cannot be judged again: %s"
                  .formatted(rank, group, e.getMessage()));
    }
  }

  private static int rankOf(Path path) {
    Matcher end = RANK.matcher(String.valueOf(path.getFileName()));
    if (!end.find()) {
      throw new IllegalArgumentException("neither the file nor its name gives the rank");
    }
    return rank(end.group(1));
  }

  static List<Integer> ranks(String text) {
    return Arrays.stream(text.replaceAll("[\\[\\]\\s]", "").split(","))
        .filter(each -> !each.isEmpty())
        .map(TraceFiles::rank)
        .toList();
  }

  private static int rank(Object given) {
    String text = given.toString();
    if (!text.matches("[0-9]{1,9}")) {
      throw new IllegalArgumentException("not a flight record: '" + text + "' is no rank");
    }
    return Integer.parseInt(text);
  }

  static TraceEntry entry(int rank, Map<?, ?> fields) {
    boolean isMessage = Boolean.TRUE.equals(fields.get("is_p2p"));
    boolean isOfTorch = text(fields.get("op")).isEmpty();
    boolean isRetired = Boolean.TRUE.equals(fields.get("retired"));
    // A rank that only receives has no inputs, as in a scatter from another rank.
    boolean hasInputs = !sizes(fields.get("input_sizes")).isEmpty();
    OpType type = type(fields);
    // The tensor that c10d records for a barrier is not the caller's.
    boolean hasTensors = type != OpType.BARRIER && type != OpType.MONITORED_BARRIER;
    List<List<Long>> sizes =
        hasTensors ? sizes(fields.get(hasInputs ? "input_sizes" : "output_sizes")) : List.of();
    String parts =
        RankProgress.parts(
            type, sizes(fields.get("input_sizes")), sizes(fields.get("output_sizes")));
    return new TraceEntry(
        rank,
        fields.get("process_group") instanceof List<?> names && !names.isEmpty()
            ? String.valueOf(names.getFirst())
            : "0",
        type,
        number(fields.get(isMessage ? "p2p_seq_id" : "collective_seq_id"), 0),
        hasTensors
                && fields.get(hasInputs ? "input_dtypes" : "output_dtypes") instanceof List<?> types
                && !types.isEmpty()
            ? String.valueOf(types.getFirst())
            : "",
        TraceEntry.numel(sizes),
        parts.contains("+")
            ? "[" + parts + "]"
            : sizes.isEmpty() ? "" : String.valueOf(sizes.size() == 1 ? sizes.getFirst() : sizes),
        parts,
        text(fields.get("reduce_op")),
        optionalRank(fields.get(isMessage ? "peer" : "root")),
        text(fields.get("path")),
        isOfTorch && isRetired ? TraceEntry.COMPLETED : text(fields.get("state")),
        number(fields.get("time_created_ns"), 0),
        number(fields.get("time_discovered_completed_ns"), 0),
        isOfTorch);
  }

  /** Returns a rank, or -1 if there is none. */
  private static int optionalRank(@Nullable Object value) {
    long rank = number(value, -1);
    return rank == -1 ? -1 : rank(rank);
  }

  private static String name(Map<?, ?> fields) {
    String own = text(fields.get("op"));
    return own.isEmpty() ? text(fields.get("profiling_name")) : own;
  }

  private static OpType type(Map<?, ?> fields) {
    String name = name(fields);
    String bare = name.substring(name.indexOf(':') + 1).replaceAll(" .*", "");
    OpType known = labelled(bare);
    return known == OpType.UNKNOWN ? ofTorch(bare) : known;
  }

  static OpType labelled(String label) {
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

  static String text(@Nullable Object value) {
    return value instanceof String text ? text : "";
  }

  private static long number(@Nullable Object value, long otherwise) {
    return value instanceof Number number ? number.longValue() : otherwise;
  }
}
