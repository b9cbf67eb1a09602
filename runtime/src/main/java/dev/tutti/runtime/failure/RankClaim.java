package dev.tutti.runtime.failure;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.spi.Printable;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The place of a rank in a job, which a single member takes.
 *
 * <p>Without it, two processes of the same rank would overwrite each other's addresses, and all
 * ranks would wait for the rank that is missing instead. A restarted process takes over the place
 * of its predecessor if it can see that the predecessor is gone.
 */
public final class RankClaim {
  private static final Pattern HOLDER = Pattern.compile("process (\\d+) on (.*), \\p{XDigit}+");

  private RankClaim() {}

  /**
   * Takes a place.
   *
   * @param store the store that all members use
   * @param key the key of the place
   * @param rank the rank whose place it is
   * @param time makes the value unique
   * @throws RendezvousException if another member has the place, naming its process and host
   */
  public static void take(Store store, String key, int rank, Time time) {
    // The random number makes the value unique: a store that lost the reply asks again, and must
    // recognize the value that it wrote itself.
    String number = Integer.toHexString((int) time.random());
    String name = "process " + ProcessHandle.current().pid() + " on " + host() + ", " + number;
    byte[] self = name.getBytes(StandardCharsets.UTF_8);
    Store.Swap swap = store.compareSet(key, null, self);
    byte[] holder = swap.value();
    if (!swap.stored() && holder != null && isGone(holder)) {
      swap = store.compareSet(key, holder, self);
      holder = swap.value();
    }
    if (!swap.stored() && holder != null && !Arrays.equals(holder, self)) {
      if (isThisProcess(holder)) {
        throw new RendezvousException(
            ("rank %d has already joined this job, in this same process (%s). Call init() once, and"
                    + " get further groups from split() or subgroup() of the first")
                .formatted(rank, Printable.decode(holder)));
      }
      throw new RendezvousException(
          "rank "
              + rank
              + " has already joined this job: "
              + Printable.decode(holder)
              + ". Give each process its own RANK, and each job its own store (another port, file"
              + " or name) if this rank is left over from an earlier job");
    }
  }

  private static boolean isThisProcess(byte[] holder) {
    return processHere(holder) == ProcessHandle.current().pid();
  }

  private static boolean isGone(byte[] holder) {
    long process = processHere(holder);
    return process >= 0 && ProcessHandle.of(process).isEmpty();
  }

  private static long processHere(byte[] holder) {
    return processOn(holder, host());
  }

  /** Returns the process of a holder on a host, or -1 if the holder is elsewhere. */
  static long processOn(byte[] holder, String host) {
    Matcher process = HOLDER.matcher(new String(holder, StandardCharsets.UTF_8));
    return process.matches() && process.group(2).equals(host)
        ? Long.parseLong(process.group(1))
        : -1;
  }

  /** Returns the name of this host, and identifies the processes that can be seen here. */
  public static String host() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip()
          + " "
          + Files.readSymbolicLink(Path.of("/proc/self/ns/pid"));
    } catch (IOException e) {
      return "this host";
    }
  }
}
