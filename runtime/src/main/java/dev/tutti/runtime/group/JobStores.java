package dev.tutti.runtime.group;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.runtime.failure.JobMonitor;
import dev.tutti.runtime.rendezvous.Rendezvous;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.rendezvous.WrittenKeys;
import dev.tutti.runtime.settings.RuntimeSettings;
import dev.tutti.spi.Time;
import dev.tutti.store.PrefixStore;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The parts of the store at which a job meets. */
final class JobStores {
  /*
   * The keys follow PyTorch's own layout, so that ranks of both kinds can meet: the group of all
   * ranks has "default_pg/0/" + "/", its subgroups that and "NAME/" + "/", and each backend "TYPE/"
   * + "/" below. Tutti's own keys are kept apart under "tutti/", and contain the number of
   * restarts, because a launcher's store outlives the processes of an attempt. The launcher deletes
   * what an attempt wrote; in a store that nobody clears, and that ranks of PyTorch cannot use, all
   * keys of a later attempt are below "restart/" and the number of restarts. A rank that left a
   * job and joins again through the same store finds that it has left, and moves on to a new set of
   * keys, as all others do; so does a rank that was killed, if the others noticed. If another rank
   * serves the store, that rank serves a new store for the next job, and a rank that finds that it
   * has left waits for the new store.
   */
  private final Time time;

  /** What the group of all ranks shares with ranks of PyTorch. */
  final Store root;

  /** What only the ranks of Tutti use. */
  final Store own;

  /**
   * Divides a store.
   *
   * @param earlier how many jobs at the store are over
   * @param time the clock and waits of this rank
   */
  JobStores(Rendezvous.Meeting meeting, int earlier, Settings settings, Time time) {
    this.time = time;
    Store attempt = meeting.store();
    int restarts = settings.get(RuntimeSettings.RESTART_COUNT);
    if (restarts > 0 && meeting.outlivesRestarts()) {
      attempt = new PrefixStore("restart/" + restarts, attempt);
    }
    Store base = earlier == 0 ? attempt : new PrefixStore("again/" + earlier, attempt);
    Store pytorch = meeting.ownsStore() ? new PrefixStore("default_pg", base) : base;
    this.root = new PrefixStore("0/", pytorch);
    this.own = new PrefixStore(lifePrefix(settings, earlier), meeting.store());
  }

  /** Counts the jobs at a store that this rank has left, or that failed while it was in them. */
  static int earlierAt(Rendezvous.Meeting meeting, Settings settings) {
    int earlier = 0;
    while (isOver(meeting.store(), lifePrefix(settings, earlier), meeting.rank())) {
      earlier++;
    }
    return earlier;
  }

  /** Counts the jobs at a store that are over, for a process that was in none of them. */
  static int earlierAt(Store store, Settings settings) {
    int earlier = 0;
    while (store.check(List.of(lifePrefix(settings, earlier + 1) + "/joined/0"))) {
      earlier++;
    }
    return earlier;
  }

  /** Returns whether a rank left a job, or joined it and then a failure of the job was reported. */
  private static boolean isOver(Store store, String life, int rank) {
    return store.check(List.of(life + "/left/" + rank))
        || (store.check(List.of(life + "/joined/" + rank)) && JobMonitor.hasFailed(store, life));
  }

  private static String lifePrefix(Settings settings, int earlier) {
    String own = "tutti/" + settings.get(RuntimeSettings.RESTART_COUNT);
    return earlier == 0 ? own : own + "." + earlier;
  }

  /** Returns the keys of a program in a group. */
  Store ofUser(String group) {
    return new PrefixStore("user/" + group, own);
  }

  /** Returns the keys of a group itself; those that are written are noted, if desired. */
  Store ofGroup(String group, @Nullable WrittenKeys written) {
    return new UninterruptedStore(new PrefixStore("group/" + group, own), time, written, null);
  }

  /** Returns the keys of a backend of a group. */
  Store ofBackend(String group, String deviceType) {
    Store all = group.equals("0") ? root : new PrefixStore(group + "/", root);
    return new PrefixStore(deviceType + "/", all);
  }
}
