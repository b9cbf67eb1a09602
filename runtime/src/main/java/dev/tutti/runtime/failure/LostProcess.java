package dev.tutti.runtime.failure;

import dev.tutti.Store;
import dev.tutti.runtime.membership.LogStart;
import dev.tutti.store.PrefixStore;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/** Reports to the ranks of a job, from outside, that one of their processes has ended. */
public final class LostProcess {
  private LostProcess() {}

  /**
   * Appends to the log that the rank of a process is lost, as stores do that can detect the end of
   * a process; does nothing if no rank has joined as that process, or it left.
   *
   * @param store the store at which the ranks met
   * @param restarts how often the launcher has restarted the job
   * @param pid a process of this host that has ended
   * @throws dev.tutti.StoreException if the store does not answer
   */
  public static void report(Store store, int restarts, long pid) {
    report(store, restarts, RankClaim.host(), Set.of(pid));
  }

  /**
   * Does the same for processes of any host.
   *
   * @param store the store at which the ranks met
   * @param restarts how often the launcher has restarted the job
   * @param host where they were, as {@link RankClaim#host} says there
   * @param pids the processes
   * @throws dev.tutti.StoreException if the store does not answer
   */
  public static void report(Store store, int restarts, String host, Set<Long> pids) {
    Store job = new PrefixStore("tutti/" + restarts, store);
    for (String key : job.listKeys()) {
      String number = key.startsWith("joined/") ? key.substring("joined/".length()) : "";
      if (number.matches("\\d{1,9}")
          && pids.contains(RankClaim.processOn(job.get(key), host))
          && !job.check(List.of("left/" + number))) {
        append(job, FailureEvent.lost(Integer.parseInt(number)).encode());
      }
    }
  }

  private static void append(Store job, byte[] entry) {
    long number;
    do {
      number = LogStart.read(job).first();
      while (!isThere(job, JobMonitor.key(number), entry)) {
        number++;
      }
    } while (LogStart.read(job).first() > number);
  }

  /** Returns whether an entry is at a place now, which may have been free. */
  private static boolean isThere(Store job, String key, byte[] entry) {
    Store.Swap swap = job.compareSet(key, null, entry);
    return swap.stored() || Arrays.equals(swap.value(), entry);
  }
}
