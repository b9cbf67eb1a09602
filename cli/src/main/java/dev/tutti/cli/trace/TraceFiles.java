package dev.tutti.cli.trace;

import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.trace.TraceJobs.Part;
import dev.tutti.runtime.record.JsonReader;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.RankOperation;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
  static JobRecords read(List<Path> paths) throws IOException {
    JobRecords trace = JobRecords.empty();
    JobRecords records = JobRecords.empty();
    Map<Path, @Nullable Object> found = new LinkedHashMap<>();
    Map<Path, byte[]> pickles = new LinkedHashMap<>();
    List<Part> parts = new ArrayList<>();
    for (Path path : TraceFolders.expand(paths, trace.notes())) {
      byte[] head = read(path, () -> TraceFolders.head(path));
      if (head.length == 0) {
        trace.notes().add(path + " is empty: its rank was killed, or is still running");
      } else if (TraceFolders.isRecording(head)) {
        Part part = new Part(path.toString(), true, JobRecords.empty());
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
        records, trace.operations().isEmpty() ? UnaryOperator.identity() : RankOperation::bare);
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
  private static boolean orLeaveOut(Path path, List<Path> given, JobRecords trace, Step step)
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
      Map<Path, @Nullable Object> found, List<Path> given, JobRecords trace, List<Part> parts)
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
        Part part = new Part(path.toString(), false, JobRecords.empty());
        if (orLeaveOut(path, given, trace, () -> add(each.getValue(), path, part.trace()))) {
          parts.add(part);
          if (!trace.operations().keySet().containsAll(part.trace().operations().keySet())) {
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
        ? FlightRecordReader.number(fields.get("restarts"), otherwise)
        : otherwise;
  }

  /** Returns when the newest operation of a record was created, or else when it was written. */
  private static long newest(Path path, @Nullable Object record) throws IOException {
    long newest = 0;
    if (record instanceof Map<?, ?> fields && fields.get("entries") instanceof List<?> all) {
      for (Object entry : all) {
        if (entry instanceof Map<?, ?> one) {
          newest = Math.max(newest, FlightRecordReader.number(one.get("time_created_ns"), 0));
        }
      }
    }
    return newest > 0 ? newest : Files.getLastModifiedTime(path).to(TimeUnit.NANOSECONDS);
  }

  private static void add(@Nullable Object value, Path path, JobRecords trace) {
    if (!(value instanceof Map<?, ?> record) || !(record.get("entries") instanceof List<?>)) {
      throw new IllegalArgumentException("not a flight record: it has no entries");
    }
    int rank = record.get("rank") instanceof Long own ? FlightRecordReader.rank(own) : rankOf(path);
    FlightRecordReader.add(record, rank, trace);
  }

  private static int rankOf(Path path) {
    Matcher end = RANK.matcher(String.valueOf(path.getFileName()));
    if (!end.find()) {
      throw new IllegalArgumentException("neither the file nor its name gives the rank");
    }
    return FlightRecordReader.rank(end.group(1));
  }
}
