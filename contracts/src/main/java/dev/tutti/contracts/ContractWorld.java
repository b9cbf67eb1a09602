package dev.tutti.contracts;

import dev.tutti.Capabilities;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.spi.Time;
import dev.tutti.testing.Leaks;
import java.time.Duration;
import java.util.List;
import java.util.OptionalInt;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.opentest4j.TestAbortedException;

/**
 * The world of one {@link ContractTest}: a number of ranks of one backend, as threads of this JVM,
 * or the only one of them that is in this JVM. Each run of a body creates a new group.
 */
public final class ContractWorld {
  private final ContractSubject subject;
  private final int size;

  ContractWorld(ContractSubject subject, int size) {
    this.subject = subject;
    this.size = size;
  }

  /** The body that each rank runs. */
  interface MemberBody {
    void run(Member member) throws Exception;
  }

  /** The body that each rank runs with each of some cases. */
  interface CaseBody {
    void run(Member member, ReductionCase reduction) throws Exception;
  }

  /** The body that each rank runs to find something out. */
  interface Probe<T> {
    T run(Member member) throws Exception;
  }

  /** Returns the number of ranks. */
  public int size() {
    return size;
  }

  ContractSubject subject() {
    return subject;
  }

  Capabilities capabilities() {
    return subject.capabilities();
  }

  boolean movesData() {
    return subject.provider().movesData();
  }

  /**
   * Returns numbers of elements: around the number of ranks, around powers of two, and a large odd
   * one.
   */
  long[] sizes() {
    return new long[] {
      0, 1, 3, size - 1, size, size + 1, 255, 256, 1023, 4097, isLarge() ? 9_001 : 70_001
    };
  }

  /** Returns numbers of elements for operations that move that many for each pair of ranks. */
  long[] partSizes() {
    return isLarge() ? new long[] {0, 1, 3, 255} : new long[] {0, 1, 3, size + 1, 1023, 35_001};
  }

  /** Returns the roots to test with: all ranks, or four of them in a large world. */
  int[] roots() {
    return isLarge() ? new int[] {0, 1, size / 2, size - 1} : IntStream.range(0, size).toArray();
  }

  /** Returns whether there are so many ranks that a test must do less with each. */
  boolean isLarge() {
    return size > 8;
  }

  /** Returns whether all ranks run in this JVM. */
  boolean isInOneJvm() {
    return subject.onlyRank().isEmpty();
  }

  Duration groupTimeout() {
    return subject.timeout().dividedBy(2);
  }

  /** Runs a body on all ranks of a new group. */
  void run(MemberBody body) throws Exception {
    run(options -> options, body);
  }

  /** Runs a body with each of some cases on all ranks of one new group. */
  void runEach(List<ReductionCase> cases, CaseBody body) throws Exception {
    run(
        member -> {
          for (ReductionCase reduction : cases) {
            body.run(member, reduction);
          }
        });
  }

  /** Runs a body on all ranks of a new group whose time is given. */
  void run(Time time, MemberBody body) throws Exception {
    run(options -> options, time, body);
  }

  /** Runs a body on all ranks of a new group that is created with changed options. */
  void run(UnaryOperator<GroupOptions> change, MemberBody body) throws Exception {
    run(change, Time.SYSTEM, body);
  }

  private void run(UnaryOperator<GroupOptions> change, Time time, MemberBody body)
      throws Exception {
    Probe<Boolean> probe =
        member -> {
          body.run(member);
          return true;
        };
    ThreadGroup threads = new ThreadGroup("contract");
    OptionalInt only = subject.onlyRank();
    if (only.isPresent()) {
      GroupOptions options =
          GroupOptions.DEFAULT
              .withProvider(subject.provider())
              .withTime(time)
              .withRank(only.getAsInt())
              .withSize(size);
      new LoneRank(complete(change, options), subject.timeout())
          .run(threads, group -> enter(group, probe));
    } else {
      world(change, threads).withTime(time).run(group -> enter(group, probe));
    }
    Leaks.assertNoThreads(threads, subject.sharedThreads());
  }

  /**
   * Runs a body on all ranks of a new group and returns what each found out.
   *
   * @throws org.opentest4j.TestAbortedException if the other ranks are in other JVMs
   */
  <T> List<T> collect(Probe<T> probe) throws Exception {
    if (!isInOneJvm()) {
      throw new TestAbortedException("compares the ranks, which run in other JVMs here");
    }
    ThreadGroup threads = new ThreadGroup("contract");
    List<T> found = world(options -> options, threads).call(group -> enter(group, probe));
    Leaks.assertNoThreads(threads, subject.sharedThreads());
    return found;
  }

  private <T> T enter(ProcessGroup group, Probe<T> probe) throws Exception {
    Registration leave = subject.enter(group.rank());
    try {
      return ReductionCase.naming(() -> probe.run(new Member(this, group)));
    } finally {
      leave.close();
    }
  }

  private GroupOptions complete(UnaryOperator<GroupOptions> change, GroupOptions options) {
    return change.apply(
        subject.options(options.withTimeout(groupTimeout()).withSettings(subject.settings())));
  }

  private ThreadedWorld world(UnaryOperator<GroupOptions> change, ThreadGroup threads) {
    return ThreadedWorld.of(size)
        .withProvider(subject.provider())
        .withTimeout(subject.timeout())
        .withThreads(threads)
        .withOptions(options -> complete(change, options));
  }
}
