package dev.tutti.runtime.group;

import dev.tutti.Settings;
import dev.tutti.json.Json;
import dev.tutti.runtime.events.Events;
import dev.tutti.runtime.events.RecordSource;
import dev.tutti.runtime.failure.BoundedCalls;
import dev.tutti.runtime.operation.FlightRecord;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.record.RecordFiles;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.runtime.signal.DumpSignal;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

/** Holds the flight records of a rank's groups, and writes them to files. */
final class FlightRecords implements RecordSource {
  private static final System.Logger LOG = System.getLogger(FlightRecords.class.getName());
  private static final int CLOSED = 16;
  private static final Duration LOOK = Duration.ofSeconds(2);

  private final int rank;
  private final Settings settings;
  private final Time time;
  private final int restarts;
  private final List<Group> open = new ArrayList<>();
  private final Deque<Group> closed = new ArrayDeque<>();
  private final AtomicBoolean looking = new AtomicBoolean();
  private final Runnable dump = this::dumpIfAsked;

  /** Creates the empty set of records of a rank. */
  FlightRecords(int rank, Settings settings, Time time) {
    this.time = time;
    this.rank = rank;
    this.settings = settings;
    this.restarts = settings.get(RuntimeSettings.RESTART_COUNT);
  }

  /**
   * Arranges for the records to be written on request: by a signal if the settings name a place,
   * and by the JDK. Signals and recordings concern the process, so not the ranks of a simulation.
   */
  void open() {
    if (!time.equals(Time.SYSTEM)) {
      return;
    }
    Events.get().add(this);
    if (isDumpAsked()) {
      DumpSignal.add(dump);
    }
  }

  /** Undoes {@link #open}, because the rank has left. */
  void close() {
    Events.get().remove(this);
    DumpSignal.remove(dump);
  }

  synchronized void add(Group group) {
    open.add(group);
  }

  /** Keeps the record of a group that is closed, and drops that of one closed long before. */
  synchronized void close(Group group) {
    if (open.remove(group)) {
      closed.add(group);
      if (closed.size() > CLOSED) {
        closed.remove();
      }
    }
  }

  /** Returns whether the settings name a place for the files. */
  boolean isDumpAsked() {
    return !RuntimeSettings.dumpPrefix(settings).isEmpty();
  }

  /**
   * Notes which operations the devices have completed; their ends are otherwise noted up to a
   * second later. May end a group, so the caller must hold no lock. A driver that hangs is not
   * waited for, and is asked again only once it has answered.
   */
  void look() {
    if (looking.getAndSet(true)) {
      return;
    }
    try {
      BoundedCalls.run(time, "tutti-ask-" + rank, LOOK, this::lookNow);
    } catch (Exception e) {
      LOG.log(Level.DEBUG, "rank " + rank + ": cannot ask the devices what they have done", e);
    } catch (OutOfMemoryError e) {
      looking.set(false);
      LOG.log(Level.DEBUG, "rank " + rank + ": there is no thread that can ask the devices", e);
    }
  }

  private void lookNow() {
    try {
      openGroups().forEach(group -> group.pending.look(LOOK.toNanos()));
    } finally {
      looking.set(false);
    }
  }

  /** Writes the files to the place that the settings name, if any; logs errors. */
  void dumpIfAsked() {
    String prefix = RuntimeSettings.dumpPrefix(settings);
    if (!prefix.isEmpty()) {
      try {
        List<Path> _ = dump(Path.of(prefix));
      } catch (IOException | RuntimeException e) {
        LOG.log(Level.WARNING, "rank " + rank + ": cannot write its flight record", e);
      }
    }
  }

  /** Writes the files. */
  List<Path> dump(Path prefix) throws IOException {
    look();
    return write(prefix);
  }

  private synchronized List<Path> write(Path prefix) throws IOException {
    List<FlightRecord.Part> parts = parts();
    return RecordFiles.write(
        prefix, rank, withTime(FlightRecord.ofKnownToTorch(rank, restarts, parts)), toMap(parts));
  }

  /** Returns the content of the JSON file. */
  Map<String, Object> toMap() {
    return toMap(parts());
  }

  /** Returns a record of this rank with some parts. */
  Map<String, Object> toMap(List<FlightRecord.Part> parts) {
    return withTime(FlightRecord.of(rank, restarts, parts));
  }

  /** Adds when the record was taken, and how long an operation may wait. */
  private Map<String, Object> withTime(Map<String, Object> record) {
    record.put("time_ns", time.epochMillis() * 1_000_000);
    record.put("slow_ms", settings.get(RuntimeSettings.SLOW).toMillis());
    return record;
  }

  /** Returns the open groups, in the order in which they were created. */
  synchronized List<Group> openGroups() {
    return List.copyOf(open);
  }

  private synchronized List<FlightRecord.Part> parts() {
    return Stream.concat(closed.stream(), open.stream()).map(Group::flightRecord).toList();
  }

  @Override
  public void forEach(Sink sink) {
    for (FlightRecord.Part part : parts()) {
      GroupIdentity group = part.group();
      String ranks = group.globalRanks().toString();
      if (part.entries().isEmpty()) {
        sink.accept(group.name(), rank, ranks, "");
      }
      for (Map<String, Object> entry : part.entries()) {
        sink.accept(group.name(), rank, ranks, Json.write(entry));
      }
    }
  }
}
