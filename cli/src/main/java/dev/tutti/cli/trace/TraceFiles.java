package dev.tutti.cli.trace;

import dev.tutti.cli.process.Counts;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.trace.TraceJobs.Part;
import dev.tutti.json.Json;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobRecords;
import dev.tutti.runtime.view.RankOperation;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.CharacterCodingException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The reader of files of flight records, as JSON or pickle, from Tutti or PyTorch, or JFR. */
final class TraceFiles {
  private static final Pattern RANK = Pattern.compile("(\\d+)(\\.json)?$");

  /** More than a record has, but not more than can be read at once. */
  private static final long MOST_BYTES = 256L << 20;

  private final List<Path> given;
  private final JobRecords trace = JobRecords.empty();
  private final JobRecords records = JobRecords.empty();
  private final List<Found> found = new ArrayList<>();
  private final List<Part> parts = new ArrayList<>();

  private TraceFiles(List<Path> given) {
    this.given = given;
  }

  /**
   * A flight record.
   *
   * @param isPickle whether it is a pickle, which contains less than JSON
   * @param newestNanos the time of its newest operation, or else when it was written
   * @param restarts how many restarts came before it, or -1 as PyTorch's records do not say
   */
  private record Found(Part part, boolean isPickle, long newestNanos, long restarts) {}

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
    TraceFiles files = new TraceFiles(paths);
    List<Path> all = new ArrayList<>();
    for (Path path : paths) {
      files.expand(path, false, all);
    }
    for (Path path : all) {
      files.take(path);
    }
    files.addLatest();
    TraceJobs.requireOne(files.parts);
    boolean isWhole = files.trace.operations().isEmpty();
    files.trace.addMissing(files.records, isWhole ? UnaryOperator.identity() : RankOperation::bare);
    return files.trace;
  }

  /**
   * Reads a file; if it is no record, leaves it out, unless it is one of the given files. Failures
   * name the file.
   */
  private void take(Path path) throws IOException {
    try {
      read(path);
    } catch (IllegalArgumentException | CharacterCodingException e) {
      String reason =
          e instanceof CharacterCodingException malformed
              ? "not a flight record: " + Reasons.of(malformed)
              : String.valueOf(e.getMessage());
      if (given.contains(path)) {
        throw new IllegalArgumentException(path + ": " + reason, e);
      }
      trace.notes().add(path + " is left out: " + reason);
    } catch (FileSystemException e) {
      throw e;
    } catch (IOException e) {
      throw (IOException)
          new FileSystemException(path.toString(), null, e.getMessage()).initCause(e);
    }
  }

  private void read(Path path) throws IOException {
    byte[] head = head(path);
    Part part = new Part(path.toString(), isRecording(head), JobRecords.empty());
    if (head.length == 0) {
      trace.notes().add(path + " is empty: its rank was killed, or is still running");
    } else if (part.isRecording()) {
      JdkRecording.read(path, part.trace());
      parts.add(part);
      trace.addMissing(part.trace(), UnaryOperator.identity());
    } else {
      Object value =
          isPickle(head)
              ? PickleReader.read(Files.readAllBytes(path))
              : Json.read(Files.readString(path));
      if (!(value instanceof Map<?, ?> record) || !(record.get("entries") instanceof List<?>)) {
        throw new IllegalArgumentException("not a flight record: it has no entries");
      }
      Object own = record.get("rank");
      int rank = own instanceof Long ? FlightRecordReader.rank(own) : rankOf(path);
      FlightRecordReader.add(record, rank, part.trace());
      long newest = part.trace().lastNanos();
      newest = newest > 0 ? newest : Files.getLastModifiedTime(path).to(TimeUnit.NANOSECONDS);
      long restarts = FlightRecordReader.number(record.get("restarts"), -1);
      found.add(new Found(part, isPickle(head), newest, restarts));
    }
  }

  /**
   * Adds the records of the job's last attempt, which is the one with the newest operation or, if a
   * record has none, the newest file; those of PyTorch do not say theirs.
   */
  private void addLatest() {
    Comparator<Found> byTime = Comparator.comparingLong(Found::newestNanos);
    long last =
        found.stream()
            .filter(file -> file.restarts >= 0)
            .max(byTime.thenComparingLong(Found::restarts))
            .map(Found::restarts)
            .orElse(0L);
    found.sort(byTime.reversed().thenComparing(Found::isPickle));
    for (Found file : found) {
      Part part = file.part;
      if (file.restarts >= 0 && file.restarts != last) {
        records
            .notes()
            .add(
                "%s is left out: it was written after %s, and others after %d"
                    .formatted(part.file(), Counts.of(file.restarts, "restart"), last));
        continue;
      }
      parts.add(part);
      if (records.operations().keySet().containsAll(part.trace().operations().keySet())) {
        records.addFailures(part.trace());
      } else {
        records.addMissing(part.trace(), UnaryOperator.identity());
      }
    }
  }

  private static int rankOf(Path path) {
    Matcher end = RANK.matcher(String.valueOf(path.getFileName()));
    if (!end.find()) {
      throw new IllegalArgumentException("neither the file nor its name gives the rank");
    }
    return FlightRecordReader.rank(end.group(1));
  }

  /**
   * Adds a file, or the files of a folder and those of its subfolders that may be records. Other
   * files in subfolders, such as logs, are passed over; a note names each one that is not read.
   */
  private void expand(Path path, boolean isInside, List<Path> all) throws IOException {
    if (!Files.isDirectory(path)) {
      all.add(path);
      return;
    }
    List<Path> members;
    try (Stream<Path> files = Files.list(path)) {
      // A rank that writes a record names it with a dot until it is complete.
      members =
          files.filter(file -> !file.getFileName().toString().startsWith(".")).sorted().toList();
    }
    for (Path member : members) {
      if (Files.isRegularFile(member) && (!isInside || mayBeRecord(member))) {
        all.add(member);
      }
    }
    for (Path member : members.stream().filter(Files::isDirectory).toList()) {
      if (Files.isSymbolicLink(member) || !Files.isReadable(member)) {
        boolean isLink = Files.isSymbolicLink(member);
        String why = isLink ? "a link to a folder" : "it cannot be read";
        trace.notes().add(member + " is left out: " + why);
      } else {
        expand(member, true, all);
      }
    }
  }

  private static boolean mayBeRecord(Path file) throws IOException {
    String name = file.getFileName().toString();
    byte[] head = Files.isReadable(file) ? head(file) : new byte[0];
    return name.endsWith(".jfr")
        || isRecording(head)
        || (Files.size(file) <= MOST_BYTES
            && (isPickle(head) || (head.length > 0 && head[0] == '{')));
  }

  /** Returns the first bytes of a file. */
  private static byte[] head(Path path) throws IOException {
    try (InputStream in = Files.newInputStream(path)) {
      return in.readNBytes(3);
    }
  }

  private static boolean isRecording(byte[] head) {
    return head.length == 3 && head[0] == 'F' && head[1] == 'L' && head[2] == 'R';
  }

  private static boolean isPickle(byte[] head) {
    return head.length > 0 && (head[0] & 0xff) == 0x80;
  }
}
