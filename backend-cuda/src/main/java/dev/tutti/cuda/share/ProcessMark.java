package dev.tutti.cuda.share;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.UUID;

/**
 * A mark that identifies a process on a running kernel by one positive number: the process ID and,
 * in the higher bits, the start time in ticks since boot, so that a reused process ID yields a
 * different mark. All methods may be called from any thread.
 */
public final class ProcessMark {
  /** The number of bits in the largest process ID that Linux allows. */
  private static final int PID_BITS = 22;

  private static final long PID_MASK = (1L << PID_BITS) - 1;
  private static final Path PROC = Path.of("/proc");

  private static final long HOST = bootId();

  // Fields of /proc/PID/stat, counted from the one after the name.
  private static final int STATE = 0;
  private static final int THREADS = 17;
  private static final int START = 19;

  private ProcessMark() {}

  /** Returns a number that identifies the running kernel. */
  public static long host() {
    return HOST;
  }

  private static long bootId() {
    try {
      String id = Files.readString(PROC.resolve("sys/kernel/random/boot_id")).trim();
      return UUID.fromString(id).getMostSignificantBits();
    } catch (IOException e) {
      return 0;
    }
  }

  /** Returns the mark of this process. */
  public static long own() {
    long mark = of(ProcessHandle.current().pid());
    if (mark == 0) {
      throw new IllegalStateException("/proc does not show this process");
    }
    return mark;
  }

  /** Returns the process ID in a mark. */
  public static long pid(long mark) {
    return mark & PID_MASK;
  }

  /** Returns whether a process is running; a zombie is not. */
  public static boolean isAlive(long mark) {
    try {
      return read(pid(mark)) == mark;
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException e) {
      // No descriptor, or the process ended meanwhile (ESRCH): then /proc has no directory for it.
      return PROC.resolve(Long.toString(pid(mark))).toFile().exists();
    }
  }

  /** Returns the mark of a running process, or 0. */
  static long of(long pid) {
    try {
      return read(pid);
    } catch (IOException e) {
      return 0; // no such process
    }
  }

  private static long read(long pid) throws IOException {
    // The name of a process may contain any bytes.
    String stat = Files.readString(PROC.resolve(pid + "/stat"), ISO_8859_1);
    String[] fields = stat.substring(stat.lastIndexOf(')') + 2).trim().split(" ", -1);
    boolean ended = fields[STATE].equals("Z") || fields[STATE].equals("X");
    if (ended && Integer.parseInt(fields[THREADS]) <= 1) {
      return 0;
    }
    return Long.parseLong(fields[START]) << PID_BITS | pid;
  }
}
