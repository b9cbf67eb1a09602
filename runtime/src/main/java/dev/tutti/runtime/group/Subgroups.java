package dev.tutti.runtime.group;

import dev.tutti.GroupClosedException;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreSilentException;
import dev.tutti.TuttiException;
import dev.tutti.runtime.failure.Blame;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.BoundBackend;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.rendezvous.RankAgreement;
import dev.tutti.runtime.rendezvous.StoreWait;
import dev.tutti.runtime.rendezvous.WrittenKeys;
import dev.tutti.spi.Backend;
import dev.tutti.spi.PeerLateException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** Creates the groups that are parts of one group. */
final class Subgroups {
  private final Group group;
  private final Job job;
  private final List<DefaultProcessGroup> children = new CopyOnWriteArrayList<>();
  private int count;
  private final Map<List<Integer>, Integer> countsOfMembers = new HashMap<>();
  private volatile boolean closing;

  private record Member(int rank, int color, int key) {
    static Member parse(int rank, byte[] answer) {
      String[] parts = new String(answer, StandardCharsets.UTF_8).split(" ", 2);
      return new Member(rank, Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
    }
  }

  Subgroups(Group group, Job job) {
    this.group = group;
    this.job = job;
  }

  /**
   * Counts calls equally on all ranks; subgroups of the group of all ranks get c10d's names "1",
   * "2".
   */
  private synchronized String nextName() {
    count++;
    return qualified(Integer.toString(count));
  }

  private String qualified(String name) {
    return group.identity.isOfAllRanks() ? name : group.identity.name() + "." + name;
  }

  /**
   * Names a group that only its members make: a hash, as c10d's, of the ranks and the number of
   * this call among those with the same ranks.
   */
  private synchronized String nextName(List<Integer> sorted) {
    int number = countsOfMembers.merge(sorted, 1, Integer::sum);
    String text = sorted.stream().map(rank -> rank + "_").collect(Collectors.joining()) + number;
    try {
      byte[] hash =
          MessageDigest.getInstance("SHA-1").digest(text.getBytes(StandardCharsets.UTF_8));
      return qualified(HexFormat.of().formatHex(hash));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-1", e);
    }
  }

  /** Returns whether a backend has ranks that do not answer through the store. */
  private boolean hasForeignRanks() {
    return group.backends.values().stream().anyMatch(bound -> bound.backend().hasForeignRanks());
  }

  Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    if (hasForeignRanks() && !group.identity.isOfAllRanks()) {
      throw new UnsupportedOperationException(
          ("subgroup of group %s, which has PyTorch ranks: those can create subgroups only of the"
                  + " group of all ranks")
              .formatted(group.identity.name()));
    }
    long deadline = group.time.nanoTime() + group.timeoutNanos();
    String name = nextName();
    WrittenKeys written = noteKeys(name, group.identity.size());
    List<Integer> sorted = ranks.stream().sorted().toList();
    if (group.identity.size() > 1 && !isAlone()) {
      orFail(
          OpType.SUBGROUP,
          () -> {
            agreement(written).requireList(name, sorted, deadline);
            return true;
          });
    }
    return create(OpType.SUBGROUP, name, sorted, deadline, written, true);
  }

  /** Creates a group of some ranks, without those that are not in it. */
  Optional<ProcessGroup> ofMembers(List<Integer> ranks) {
    if (hasForeignRanks()) {
      throw new UnsupportedOperationException(
          ("local synchronization of a subgroup of group %s, which has PyTorch ranks: those name"
                  + " such groups differently; use subgroup(ranks), called by all ranks")
              .formatted(group.identity.name()));
    }
    if (!ranks.contains(group.identity.rank())) {
      return Optional.empty();
    }
    long deadline = group.time.nanoTime() + group.timeoutNanos();
    List<Integer> sorted = ranks.stream().sorted().toList();
    String name = nextName(sorted);
    WrittenKeys written = noteKeys(name, sorted.size());
    return create(OpType.SUBGROUP, name, sorted, deadline, written, false);
  }

  private RankAgreement agreement(@Nullable WrittenKeys written) {
    return new RankAgreement(
        group.identity,
        group.failures,
        group.monitor,
        job.stores.ofGroup(group.identity.name(), written));
  }

  /**
   * Starts to note the keys of a call; null if not all ranks will say that they need them no more.
   */
  private @Nullable WrittenKeys noteKeys(String name, int ranks) {
    return isAlone() || hasForeignRanks() ? null : job.noteKeys(name, ranks);
  }

  /** Splits the group by color, in a method that the program called. */
  Optional<ProcessGroup> split(String method, int color, int key) {
    if (hasForeignRanks()) {
      throw new UnsupportedOperationException(
          ("split of group %s: its PyTorch ranks do not exchange colors; use subgroup(ranks), which"
                  + " matches their new_group")
              .formatted(group.identity.name()));
    }
    long deadline = group.time.nanoTime() + group.timeoutNanos();
    String name = nextName();
    WrittenKeys written = noteKeys(name, group.identity.size());
    List<Member> all =
        isAlone()
            ? alone(color, key)
            : orFail(
                OpType.SPLIT,
                () ->
                    group.standing.joining(
                        "split number " + name,
                        () -> {
                          agreement(written).requireMethod(name, method, deadline);
                          return exchange(written, "split/" + name + "/", color, key, deadline);
                        }));
    if (color < 0) {
      release(written);
      return Optional.empty();
    }
    List<Integer> ranks =
        all.stream()
            .filter(member -> member.color == color)
            .sorted(Comparator.comparingInt(Member::key).thenComparingInt(Member::rank))
            .map(Member::rank)
            .toList();
    return create(OpType.SPLIT, name + "." + color, ranks, deadline, written, true);
  }

  /**
   * Fails the group if a step through the store fails, because the other ranks wait for this one.
   */
  private <T> T orFail(OpType type, Supplier<T> step) {
    try {
      return step.get();
    } catch (StoreException e) {
      if (group.isClosed()) {
        GroupClosedException closed = group.closed(type);
        closed.addSuppressed(e);
        throw closed;
      }
      if (e instanceof StoreSilentException) {
        group.monitor.noteSilence();
      }
      int server = group.monitor.serverOf(group.identity);
      Blame blame = Blame.of(e, -1, group.identity.rank(), server);
      String text = OperationState.textOf(e);
      group.begin(blame.kind(), blame.rank(), type, 0, Duration.ZERO, text);
      try {
        group.failures.throwAgreed();
      } catch (TuttiException agreed) {
        agreed.addSuppressed(e);
        throw agreed;
      }
      throw e;
    }
  }

  private List<Member> exchange(
      @Nullable WrittenKeys written, String prefix, int color, int key, long deadline) {
    long start = group.time.nanoTime();
    Store store = job.stores.ofGroup(group.identity.name(), written);
    StoreWait wait = new StoreWait(group.identity, group.failures, store);
    wait.call(
        deadline,
        () -> {
          store.set(prefix + group.identity.rank(), color + " " + key);
          return prefix;
        });
    List<Integer> missing = wait.awaitRanks(prefix, 0, deadline);
    if (!missing.isEmpty()) {
      group.begin(
          Kind.TIMEOUT,
          missing.size() == 1 ? missing.get(0) : -1,
          OpType.SPLIT,
          0,
          Duration.ofNanos(group.time.nanoTime() - start),
          PeerLateException.ranks(missing) + " did not call it");
      group.failures.throwAgreed();
    }
    List<byte[]> answers = store.multiGet(wait.keys(prefix, 0), wait.answerBy(deadline));
    return IntStream.range(0, answers.size())
        .mapToObj(r -> Member.parse(r, answers.get(r)))
        .toList();
  }

  /**
   * Returns whether no backend reaches other ranks; they are then assumed to do the same as this
   * one.
   */
  private boolean isAlone() {
    return group.backends.values().stream().noneMatch(BoundBackend::movesData);
  }

  private List<Member> alone(int color, int key) {
    return IntStream.range(0, group.identity.size())
        .mapToObj(r -> new Member(r, color, key))
        .toList();
  }

  /**
   * Creates a group.
   *
   * @param byAll whether all ranks of this group take part, and not only the members
   */
  private Optional<ProcessGroup> create(
      OpType type,
      String name,
      List<Integer> ranks,
      long deadline,
      @Nullable WrittenKeys written,
      boolean byAll) {
    if (!ranks.contains(group.identity.rank())) {
      pass(type, ranks, deadline);
      release(written);
      return Optional.empty();
    }
    group.ensureUsable(type);
    Group created;
    try {
      created =
          group.standing.joining(
              "the set-up of group " + name + " of ranks " + RankAgreement.text(ranks),
              () ->
                  new GroupSetUp(job, name, ranks, deadline, group, byAll, written)
                      .run(group.timeout()));
    } catch (RuntimeException e) {
      throw orFailureOfGroup(type, e);
    }
    DefaultProcessGroup child =
        new DefaultProcessGroup(
            created,
            job,
            closed -> {
              children.remove(closed);
              if (written != null) {
                job.release(written, created);
              }
            });
    children.add(child);
    if (closing || group.isClosed()) {
      // Closed in the meantime, perhaps before this child could be seen.
      child.close();
      throw group.closed(type);
    }
    return Optional.of(child);
  }

  private void release(@Nullable WrittenKeys written) {
    if (written != null) {
      job.release(written);
    }
  }

  /**
   * Takes part in creating a group of other ranks, for backends that need all their ranks for it.
   */
  private void pass(OpType type, List<Integer> ranks, long deadline) {
    for (Backend backend : BoundBackend.distinct(group.backends.values())) {
      try {
        backend.passSubgroup(ranks, deadline);
      } catch (RuntimeException e) {
        throw orFailureOfGroup(type, e);
      }
    }
  }

  /** Returns the failure of this group if it has failed in the meantime, or else the exception. */
  private RuntimeException orFailureOfGroup(OpType type, RuntimeException cause) {
    try {
      group.ensureUsable(type);
      return cause;
    } catch (TuttiException e) {
      e.addSuppressed(cause);
      return e;
    }
  }

  /** Closes the subgroups; operations that are pending at the limit fail. */
  void close(long limitNanos) {
    closing = true;
    for (DefaultProcessGroup child : children) {
      child.close(limitNanos);
    }
  }
}
