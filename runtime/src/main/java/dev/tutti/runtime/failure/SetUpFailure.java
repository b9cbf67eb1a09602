package dev.tutti.runtime.failure;

import dev.tutti.CollectiveException;
import dev.tutti.FailureInfo;
import dev.tutti.OpType;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreConnectionException;
import dev.tutti.StoreSilentException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cpu.wait.Latch;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.runtime.operation.OperationState;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.spi.Time;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * Handles the failure of a group that is being set up: notifies the others, and finds out which
 * rank failed.
 */
public final class SetUpFailure implements MonitoredGroup {
  /*
   * A rank that waits for others during set-up runs out of time because of them, or because of
   * ranks that they wait for themselves. After a time-out the job monitor therefore asks all ranks.
   * They answer on a thread of their own, whatever call their callers are in. A rank that does not
   * answer is blamed.
   */
  private final JobMonitor monitor;
  private final GroupIdentity group;
  private final Time time;
  private final boolean isPart;
  private final Runnable end;
  private final Latch settled;
  private volatile @Nullable Evidence evidence;
  private int failedRank = -1;

  /**
   * Prepares for the failure of a set-up.
   *
   * @param group the group that is set up
   * @param isPart whether the group is a part of another group
   * @param end ends the waits of the set-up
   */
  public SetUpFailure(JobMonitor monitor, GroupIdentity group, boolean isPart, Runnable end) {
    this.monitor = monitor;
    this.group = group;
    this.time = group.time();
    this.settled = new Latch(time);
    this.isPart = isPart;
    this.end = end;
  }

  /** Connects the set-up with the monitor of its job. */
  public void start() {
    monitor.join(group, this, false);
  }

  @Override
  public void failing(FailureEvent event) {
    end.run();
  }

  @Override
  public RankProgress standing() {
    return RankProgress.ofSetUp(group.name());
  }

  @Override
  public RankProgress answer(FailureEvent event) {
    return standing();
  }

  @Override
  public void settle(Evidence all, AgreedFailure verdict) {
    evidence = all;
    settled.open();
  }

  /**
   * Notifies the other ranks, and returns the exception to throw: the first failure of all ranks,
   * or this rank's own if the others have only seen that a rank is gone, which may be this one, or
   * another one with the same cause.
   */
  public RuntimeException of(RuntimeException cause) {
    boolean silent = cause instanceof StoreSilentException;
    boolean stoodStill = isPart && monitor.stoodStill();
    FailureEvent own = eventOf(cause);
    boolean follows =
        Blame.mayFollowFromStandstill(own, group.rank())
            || cause instanceof StoreConnectionException;
    if (stoodStill && follows) {
      own = own.asTimeout().naming(group.rank(), Blame.ofStandstill(group.rank()).text());
    }
    if (silent) {
      own = own.kind() == Kind.PEER_LOST ? own.asTimeout() : own;
      monitor.noteSilence();
    }
    Evidence known = settled(own, Blame.mayBeExplained(cause));
    FailureEvent event = known.event();
    failedRank = event.kind() == Kind.FAILED ? event.reporter() : -1;
    AgreedFailure first = Blame.judge(known);
    FailureInfo info =
        group.failure(OpType.INIT, 0, first.failedRank(), first.failedRank(), Duration.ZERO);
    if (isOfLists(event)) {
      return ofLists(first.text(), info);
    }
    boolean knowsMore =
        own.kind() == Kind.FAILED
            && !(cause instanceof StoreClosedException)
            && event.kind() == Kind.PEER_LOST;
    boolean isFound = (known.paused() || !known.alone()) && first.hasFinding();
    boolean isJudged = isFound || (isPart && own.kind() != Kind.FAILED);
    if (event.reporter() == group.rank() && isJudged) {
      return first.exception(info, cause);
    }
    if (event.reporter() == group.rank() || knowsMore) {
      return cause;
    }
    return first.exception(info, cause);
  }

  /**
   * Returns the rank whose report was the first of all, as all ranks agree after {@link #of}, if it
   * blames no other rank; else -1.
   */
  public int failedRank() {
    return failedRank;
  }

  /** Returns whether an event of a group in set-up says that its ranks gave different lists. */
  private static boolean isOfLists(FailureEvent event) {
    return event.op() == OpType.SUBGROUP && event.kind() == Kind.FAILED;
  }

  /**
   * Creates the exception of a rank that finds that the ranks of a new group gave different lists.
   */
  public static CollectiveException ofLists(String text, FailureInfo info) {
    return new CollectiveException(OpType.SUBGROUP.label() + " failed: " + text, info, null);
  }

  /**
   * Ends the set-up because a peer ended its connection, unless another rank reports why. Does not
   * block.
   */
  public void explain(Throwable cause) {
    monitor.explain(eventOf(cause));
    Thread _ =
        time.start("tutti-ask-" + group.name() + "-" + group.rank(), () -> monitor.await(settled));
  }

  private FailureEvent eventOf(Throwable cause) {
    Blame blame = new Blame(Kind.FAILED, group.rank());
    for (Throwable t = cause; t != null; t = t.getCause()) {
      if (t instanceof PeerLostException
          || t instanceof TimeoutException
          || t instanceof StoreTimeoutException
          || t instanceof StoreConnectionException) {
        // If several are late, most of them are themselves waiting for another one.
        boolean several = t instanceof PeerLateException late && late.peers().size() > 1;
        int named = several ? -1 : PeerLostException.rankIn(t);
        blame = Blame.of(t, named, group.rank(), monitor.serverOf(group));
      }
    }
    return new FailureEvent(
        group.name(),
        blame.kind(),
        group.rank(),
        blame.rank(),
        OpType.INIT,
        0,
        Duration.ZERO,
        OperationState.textOf(cause));
  }

  /** Reports a failure, and waits until the ranks agree on the first one. */
  private Evidence settled(FailureEvent own, boolean mayBeExplained) {
    if (mayBeExplained) {
      monitor.explain(own);
    } else {
      monitor.report(own);
    }
    boolean _ = monitor.await(settled);
    Evidence known = evidence;
    return known == null
        ? Evidence.of(own, group, monitor.serverOf(group), false).withoutStore()
        : known;
  }
}
