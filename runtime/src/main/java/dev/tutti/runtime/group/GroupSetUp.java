package dev.tutti.runtime.group;

import dev.tutti.BackendException;
import dev.tutti.Device;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.SetUpFailure;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.rendezvous.BackendAgreement;
import dev.tutti.runtime.rendezvous.UninterruptedStore;
import dev.tutti.runtime.rendezvous.UninterruptedStore.SetUp;
import dev.tutti.runtime.rendezvous.WrittenKeys;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Creates one rank of a group: its backends, and the group itself. */
final class GroupSetUp {
  /*
   * While a group is set up, a failure reported by another rank closes the stores through which the
   * backends on this rank wait for that rank. A failure that a backend reports before its group
   * exists is kept for the group.
   */
  private static final System.Logger LOG = System.getLogger(GroupSetUp.class.getName());

  private final Job job;
  private final GroupIdentity identity;
  private final List<Integer> ranks;
  private final long deadlineNanos;
  private final @Nullable Group parent;
  private final boolean byAll;
  private final SetUp limits;
  private final Map<String, UninterruptedStore> stores = new LinkedHashMap<>();
  private final Map<String, BoundBackend> bound = new LinkedHashMap<>();
  private final SetUpFailure failure;
  private final EarlyFailures early;

  /** Whether a backend threw what no backend throws because of other ranks. */
  private boolean isThrownHere;

  /**
   * Prepares the set-up of a group.
   *
   * @param ranks the members' ranks in the parent, or among all
   * @param deadlineNanos the deadline of all waits during set-up, in terms of the clock of this
   *     rank
   * @param parent the group whose failures also end this one, null if there is no other group
   * @param byAll whether all ranks of the parent take part, so that the parent's backends may
   *     create those of this group
   * @param written notes the keys that the backends write; null if they are never deleted
   */
  GroupSetUp(
      Job job,
      String name,
      List<Integer> ranks,
      long deadlineNanos,
      @Nullable Group parent,
      boolean byAll,
      @Nullable WrittenKeys written) {
    this.job = job;
    this.ranks = ranks;
    this.deadlineNanos = deadlineNanos;
    this.parent = parent;
    this.byAll = byAll;
    List<Integer> globalRanks =
        parent == null ? ranks : ranks.stream().map(parent.identity.globalRanks()::get).toList();
    int rank = globalRanks.indexOf(job.rank);
    this.identity = new GroupIdentity(name, rank, globalRanks, job.settings, job.time);
    this.limits = new SetUp(name, rank, deadlineNanos, job.monitor.times().answer());
    for (String type : job.providers.keySet()) {
      stores.put(
          type,
          new UninterruptedStore(job.stores.ofBackend(name, type), job.time, written, limits));
    }
    this.failure = new SetUpFailure(job.monitor, identity, parent != null, this::end);
    this.early = new EarlyFailures(this::end, failure);
  }

  private void end() {
    stores.values().forEach(UninterruptedStore::close);
  }

  /**
   * Creates the group; all its ranks must take part.
   *
   * @param timeout the deadline of the group's operations
   */
  Group run(Duration timeout) {
    failure.start();
    Runnable end = this::end;
    if (parent != null) {
      parent.failures.whenFailing(end);
    }
    try {
      bindAll();
      Group group =
          new Group(
              identity, timeout, job.monitor, Collections.unmodifiableMap(bound), job.records);
      group.start();
      stores.values().forEach(UninterruptedStore::endSetUp);
      early.tell(group);
      return group;
    } catch (RuntimeException | Error e) {
      closeAll();
      try {
        if (parent != null && parent.failures.isFailing()) {
          // The others are notified of that failure, not of this one, which follows from it.
          throw e;
        }
        RuntimeException told =
            e instanceof RuntimeException exception
                ? exception
                : new BackendException(
                    "group " + identity.name() + " could not be set up: " + e, e);
        throw failure.of(early.causeOf(told));
      } finally {
        job.monitor.leave(identity.name());
      }
    } finally {
      if (parent != null) {
        parent.failures.forget(end);
      }
    }
  }

  /**
   * Returns whether the set-up failed, on all ranks, because this one could not create a backend.
   */
  boolean hasFailedHere() {
    return isThrownHere && failure.failedRank() == identity.rank();
  }

  private void bindAll() {
    if (parent == null) {
      UninterruptedStore own = new UninterruptedStore(job.stores.own, job.time, null, limits);
      BackendAgreement.require(own, job.rank, job.size, job.providers);
    }
    job.providers.forEach(
        (type, provider) -> {
          Backend same = sharedOf(provider);
          Backend backend = same == null ? create(provider, type) : same;
          bound.put(type, BoundBackend.of(provider, type, backend));
        });
  }

  /** Finds the backend that serves all device kinds of its provider, if there is one. */
  private @Nullable Backend sharedOf(BackendProvider provider) {
    return bound.values().stream()
        .filter(each -> provider.equals(job.providers.get(each.deviceType())))
        .filter(each -> provider.isOneForAllDevices())
        .map(BoundBackend::backend)
        .findFirst()
        .orElse(null);
  }

  private Backend create(BackendProvider provider, String type) {
    BackendContext context =
        BackendContext.builder(
                identity.name(),
                identity.rank(),
                identity.size(),
                Objects.requireNonNull(stores.get(type)),
                job.time.left(deadlineNanos))
            .globalRanks(identity.globalRanks())
            .device(type, deviceFor(provider, type))
            .settings(job.settings)
            .onFailure(early)
            .time(job.time)
            .build();
    BoundBackend above = parent == null || !byAll ? null : parent.backends.get(type);
    try {
      Backend backend = above == null ? null : above.backend().createSubgroup(context, ranks);
      return backend == null ? provider.create(context) : backend;
    } catch (TuttiException e) {
      throw e;
    } catch (Exception | Error e) {
      isThrownHere = true;
      throw new BackendException(
          "backend '%s' could not be set up on %s: %s"
              .formatted(provider.name(), identity.describe(), e),
          e);
    }
  }

  private Device deviceFor(BackendProvider provider, String type) {
    Device own = job.device;
    boolean fits =
        own != null
            && (own.type().equals(type)
                || (provider.isOneForAllDevices() && provider.deviceTypes().contains(own.type())));
    return own != null && fits ? own : new Device(type, 0);
  }

  private void closeAll() {
    for (Backend backend : BoundBackend.distinct(bound.values())) {
      try {
        backend.close();
      } catch (RuntimeException | LinkageError e) {
        LOG.log(Level.DEBUG, "closing a backend after a failed set-up", e);
      }
    }
  }
}
