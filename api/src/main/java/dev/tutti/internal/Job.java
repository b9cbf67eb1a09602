package dev.tutti.internal;

import dev.tutti.BackendException;
import dev.tutti.CollectiveException;
import dev.tutti.Device;
import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.TuttiException;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.store.PrefixStore;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/** Holds what the groups of one rank share: the store, the backends' providers, the monitor. */
final class Job {
  /*
   * Keys of PyTorch's own layout, so that ranks of both kinds meet: the group of all ranks has
   * "default_pg/0/" + "/", its subgroups that and "NAME/" + "/", and each backend "TYPE/" + "/" below.
   * Tutti's own keys lie apart under "tutti/", with the number of restarts in them, because a
   * launcher's store outlives the processes of an attempt.
   */
  private static final System.Logger LOG = System.getLogger(Job.class.getName());

  final int rank;
  final int size;
  final Settings settings;
  final Duration timeout;
  private final Rendezvous.Meeting meeting;
  private final Map<String, BackendProvider> providers;
  private final @Nullable Device device;
  private final Store rootStore;
  private final Store ownStore;
  private final JobMonitor monitor;

  Job(
      Rendezvous.Meeting meeting,
      Map<String, BackendProvider> providers,
      @Nullable Device device,
      Settings settings,
      Duration timeout) {
    this.meeting = meeting;
    this.providers = providers;
    this.device = device;
    this.rank = meeting.rank();
    this.size = meeting.size();
    this.settings = settings;
    this.timeout = timeout;
    Store base = meeting.store();
    Store pytorch = meeting.ownsStore() ? new PrefixStore("default_pg", base) : base;
    this.rootStore = new PrefixStore("0/", pytorch);
    this.ownStore = new PrefixStore("tutti/" + settings.get(RuntimeSettings.RESTART_COUNT), base);
    this.monitor = new JobMonitor(ownStore, "", rank);
  }

  void start() {
    ownStore.set("joined/" + rank, "1");
    monitor.start();
  }

  JobMonitor monitor() {
    return monitor;
  }

  Store userStore(String group) {
    return new PrefixStore("user/" + group, ownStore);
  }

  Store groupStore(String group) {
    return new PrefixStore("group/" + group, ownStore);
  }

  /** Creates the backends of a group and the group; all its ranks do. */
  Group createGroup(String name, int groupRank, List<Integer> globalRanks, Duration groupTimeout) {
    Store store = name.equals("0") ? rootStore : new PrefixStore(name + "/", rootStore);
    AtomicReference<@Nullable Group> listening = new AtomicReference<>();
    Map<String, BoundBackend> bound = new LinkedHashMap<>();
    try {
      for (Map.Entry<String, BackendProvider> entry : providers.entrySet()) {
        String type = entry.getKey();
        BackendContext context =
            new BackendContext(
                name,
                groupRank,
                globalRanks.size(),
                globalRanks,
                type,
                device != null && device.type().equals(type) ? device : new Device(type, 0),
                new PrefixStore(type + "/", store),
                timeout,
                settings,
                (cause, failedRank) -> {
                  Group group = listening.get();
                  if (group != null) {
                    group.peerFailed(cause, failedRank);
                  }
                });
        bound.put(type, bind(entry.getValue(), type, context));
      }
    } catch (RuntimeException e) {
      closeAll(bound);
      throw e;
    }
    Group group =
        new Group(name, groupRank, globalRanks, settings, groupTimeout, monitor, Map.copyOf(bound));
    listening.set(group);
    group.start();
    return group;
  }

  private BoundBackend bind(BackendProvider provider, String type, BackendContext context) {
    try {
      Backend backend = provider.create(context);
      return new BoundBackend(provider.name(), type, backend, provider.capabilities());
    } catch (TuttiException e) {
      throw e;
    } catch (Exception e) {
      throw new BackendException(
          "backend '"
              + provider.name()
              + "' could not be set up on rank "
              + context.rank()
              + "/"
              + context.size()
              + " of group "
              + context.group()
              + ": "
              + e,
          e);
    }
  }

  private static void closeAll(Map<String, BoundBackend> bound) {
    for (BoundBackend backend : bound.values()) {
      try {
        backend.backend().close();
      } catch (RuntimeException e) {
        LOG.log(Level.DEBUG, "closing a backend after a failed set-up", e);
      }
    }
  }

  /** Takes part in c10d's barrier after set-up, if the setting asks for it. */
  void initBarrier() {
    if (!settings.get(RuntimeSettings.INIT_BARRIER)) {
      return;
    }
    String key = "store_based_barrier_key:0";
    Store store = rootStore;
    if (store.add(key, 1) == size) {
      store.set(key + ":last_worker", "1");
    }
    try {
      store.wait(List.of(key + ":last_worker"), timeout);
    } catch (StoreException e) {
      throw new RendezvousException(
          "rank " + rank + ": the barrier after set-up failed: " + e.getMessage(), e);
    }
  }

  /** Frees what a closed group held; after the group of all ranks, everything. */
  void groupClosed(Group group) {
    if (group.name.equals("0")) {
      TuttiException failure = group.failure();
      close(failure != null, failure instanceof CollectiveException e ? e.failedRank() : -1);
    }
  }

  /** Frees everything. The rank that serves the store lets the others finish first. */
  void close(boolean failed, int failedRank) {
    try {
      ownStore.set("left/" + rank, "1");
      if (meeting.hostsStore()) {
        awaitOthers(failed, failedRank);
      }
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: leaves without the store: {1}", rank, e.getMessage());
    }
    monitor.close();
    if (meeting.ownsStore()) {
      meeting.store().close();
    }
  }

  private void awaitOthers(boolean failed, int failedRank) {
    Duration limit = settings.get(RuntimeSettings.CLOSE_TIMEOUT);
    List<String> waited = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      if (r != rank && r != failedRank && ownStore.check(List.of("joined/" + r))) {
        waited.add("left/" + r);
      }
    }
    if (!waited.isEmpty()) {
      ownStore.wait(
          waited,
          failed && limit.compareTo(Duration.ofSeconds(2)) > 0 ? Duration.ofSeconds(2) : limit);
    }
  }
}
