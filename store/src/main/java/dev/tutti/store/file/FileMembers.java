package dev.tutti.store.file;

import dev.tutti.StoreException;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HexFormat;
import java.util.Map;

/** Records which processes use a store file, and refuses a file left by a former run. */
final class FileMembers {
  /*
   * PyTorch counts how many ranks opened the file ("refcount/") and how many finished ("cleanup/"),
   * and this class does the same. A process that was killed stays counted, so a JVM also leaves a
   * record of its own under "tutti/member/", which PyTorch ignores: its boot id, its process id
   * namespace, its process id and its start time. No other process has the same values, so any
   * process that opens the file on that host can determine whether that process still runs. The record
   * is deleted on close.
   *
   * A file with content is taken to belong to this run if
   *   1. a process that has it open is known to run; or
   *   2. no process that has it open is known to be dead, a process that cannot be checked (a rank
   *      of PyTorch, or one on another host) may have it open or some ranks, but not all of a known
   *      world size, have finished, and it was changed no longer ago than ranks wait for each other.
   * Otherwise it is refused.
   */
  private static final String FINISHED = "cleanup/";
  private static final Path BOOT = Path.of("/proc/sys/kernel/random/boot_id");
  private static final Path NAME_SPACE = Path.of("/proc/self/ns/pid");

  private final Path path;
  private final int worldSize;
  private final Duration recent;
  private final Time time;
  private final String self;

  /**
   * Creates the records for one opening of a file.
   *
   * @param path the file
   * @param worldSize the number of ranks; 0 if it is not known
   * @param recent how long ago the file of a run that is starting may have been changed
   * @param time gives the time of day, and makes names
   */
  FileMembers(Path path, int worldSize, Duration recent, Time time) {
    this.path = path;
    this.worldSize = worldSize;
    this.recent = recent;
    this.time = time;
    self = FileLog.MEMBER + name(time);
  }

  private static String name(Time time) {
    return HexFormat.of().toHexDigits(time.random()) + HexFormat.of().toHexDigits(time.random());
  }

  /** Refuses a file of a former run; the file is locked. */
  void requireFresh(Map<String, byte[]> values, Instant modified) {
    if (values.isEmpty()) {
      return;
    }
    boolean others = false;
    String dead = "";
    for (Map.Entry<String, byte[]> entry : values.entrySet()) {
      if (entry.getKey().startsWith(FileLog.MEMBER)) {
        Member member = Member.parse(new String(entry.getValue(), StandardCharsets.UTF_8));
        if (!member.host.equals(Member.hostOfThisProcess(time))) {
          others = true;
        } else if (member.isAlive()) {
          return;
        } else {
          dead = member.describe();
        }
      }
    }
    if (!dead.isEmpty()) {
      throw stale(dead + " had it open and has died");
    }
    long finished = FileLog.number(values, FINISHED);
    boolean open = others || FileLog.haveForeigners(values);
    if (!open && (worldSize == 0 || finished >= worldSize || finished == 0)) {
      throw stale("all processes that had it open have closed it");
    }
    Duration age = Duration.ofMillis(time.epochMillis() - modified.toEpochMilli());
    if (age.compareTo(recent) > 0) {
      throw stale(
          "it was last changed %d s ago, longer than the %d s that ranks wait for each other"
              .formatted(age.toSeconds(), recent.toSeconds()));
    }
  }

  private StoreException stale(String why) {
    return new StoreException(
        ("store file %s is left over from an earlier run: %s; delete it, or use a new path for"
                + " each run")
            .formatted(path, why));
  }

  /** Counts this process in. */
  void join(FileLog.Changes changes) {
    changes.add(FileLog.REFERENCES, 1);
    changes.set(self, Member.ofThisProcess(time).toString().getBytes(StandardCharsets.UTF_8));
  }

  /**
   * Counts this process out; returns whether it is the last one, so that the file is to be deleted.
   */
  boolean leave(FileLog.Changes changes) {
    long finished = changes.add(FINISHED, 1);
    long open = changes.add(FileLog.REFERENCES, -1);
    changes.delete(self);
    return open == 0 && worldSize > 0 && finished >= worldSize;
  }

  /**
   * A process that has the file open.
   *
   * @param host its boot id and process id namespace
   * @param pid its process id
   * @param started when it started, in ticks since the host did, which do not move when its clock
   *     is set; 0 if that is not known
   */
  record Member(String host, long pid, long started) {
    /** Where the start time is among the words after a process's name. */
    private static final int START = 19;

    static Member ofThisProcess(Time time) {
      long pid = ProcessHandle.current().pid();
      return new Member(hostOfThisProcess(time), pid, startOf(pid));
    }

    static String hostOfThisProcess(Time time) {
      try {
        return Files.readString(BOOT).strip() + "," + Files.readSymbolicLink(NAME_SPACE);
      } catch (IOException | UnsupportedOperationException e) {
        // On such a host, nothing shows whether a process runs.
        return "unknown-" + name(time);
      }
    }

    private static long startOf(long pid) {
      try {
        String all = Files.readString(Path.of("/proc", Long.toString(pid), "stat"));
        return Long.parseLong(all.substring(all.lastIndexOf(')') + 2).split(" ", -1)[START]);
      } catch (IOException | RuntimeException e) {
        return 0;
      }
    }

    static Member parse(String text) {
      String[] parts = text.split(" ", -1);
      try {
        return new Member(parts[0], Long.parseLong(parts[1]), Long.parseLong(parts[2]));
      } catch (RuntimeException e) {
        return new Member("unknown", 0, 0);
      }
    }

    boolean isAlive() {
      long start = startOf(pid);
      return ProcessHandle.of(pid).filter(ProcessHandle::isAlive).isPresent()
          && (started == 0 || start == 0 || started == start);
    }

    String describe() {
      return "process " + pid + " on this host";
    }

    @Override
    public String toString() {
      return host + " " + pid + " " + started;
    }
  }
}
