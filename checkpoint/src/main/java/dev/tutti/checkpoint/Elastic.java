package dev.tutti.checkpoint;

import dev.tutti.AbortedException;
import dev.tutti.BackendException;
import dev.tutti.CollectiveException;
import dev.tutti.CollectiveTimeoutException;
import dev.tutti.ExpelledException;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.ReconfigureOptions;
import dev.tutti.TooFewRanksException;
import dev.tutti.spi.Time;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Training that continues when ranks are lost and when others join.
 *
 * {@snippet file="ElasticSnippetsTest.java" region="elastic"}
 *
 * <p>A rank that is lost costs the step in which it is lost. The others go on from a copy of the
 * state that each keeps of the last step that all had done; a rank that joins gets that state from
 * one of them.
 */
public final class Elastic {
  private static final System.Logger LOG = System.getLogger(Elastic.class.getName());

  /** The name of the group of all ranks before its members change. */
  private static final String FIRST = "0";

  private final ElasticOptions options;
  private final Program program;
  private final HeldState held = new HeldState();
  private boolean hasReturned;

  /** What each rank runs, once in each generation. */
  public interface Program {
    /**
     * Restores the state, and does the steps that are left, each of which it commits.
     *
     * @param generation the ranks that there are now
     * @throws Exception if this rank cannot go on; it leaves, and the others go on
     */
    void run(ElasticGeneration generation) throws Exception;
  }

  private Elastic(ElasticOptions options, Program program) {
    this.options = options;
    this.program = program;
  }

  /**
   * Joins the job, and runs a program until it returns on all ranks. It is called again with each
   * change of members, and once more if a rank is lost after it returned on some ranks. A process
   * without which the others went on joins again.
   *
   * @param options how many ranks there may be, and how long they wait
   * @param program what each rank runs, on the calling thread
   * @throws TooFewRanksException if too few ranks are left, and no others come in time
   * @throws IllegalArgumentException on all ranks, if the job starts with fewer or more ranks than
   *     the options allow
   * @throws Exception if this process cannot join, or the program fails for another reason than a
   *     lost rank
   */
  public static void run(ElasticOptions options, Program program) throws Exception {
    Objects.requireNonNull(program, "program");
    run(ProcessGroup.init(options.group()), options, program);
  }

  /**
   * Does the same in a group that this process has joined.
   *
   * @param group the group of all ranks, which this method closes
   * @param options how many ranks there may be, how long they wait, and how this process joins
   *     again
   * @param program what each rank runs, on the calling thread
   * @throws TooFewRanksException as the other method does
   * @throws Exception as the other method does
   */
  public static void run(ProcessGroup group, ElasticOptions options, Program program)
      throws Exception {
    Objects.requireNonNull(options, "options");
    Objects.requireNonNull(program, "program");
    ProcessGroup current = group;
    while (true) {
      try {
        new Elastic(options, program).runAll(current);
        return;
      } catch (ExpelledException e) {
        LOG.log(Level.WARNING, "{0}; it joins again", e.getMessage());
        current = ProcessGroup.join(options.group());
      }
    }
  }

  private void runAll(ProcessGroup first) throws Exception {
    ProcessGroup group = first;
    try {
      requireSize(group);
      FolderOwner.Patience patience = FolderOwner.Patience.NONE;
      while (!runOne(group, patience)) {
        group = change(group);
        patience = new FolderOwner.Patience(options.patience(), options.group().time());
      }
    } finally {
      group.close();
    }
  }

  private void requireSize(ProcessGroup group) {
    int size = group.size();
    if (group.name().equals(FIRST) && (size < options.fewest() || size > options.most())) {
      throw new IllegalArgumentException(
          ("the job starts with %d ranks, but withSize allows %d to %d: start as many ranks, or"
                  + " change the sizes")
              .formatted(size, options.fewest(), options.most()));
    }
  }

  /** Runs the program in a generation; returns whether it is over on all ranks. */
  private boolean runOne(ProcessGroup group, FolderOwner.Patience patience) throws Exception {
    ElasticGeneration generation = new ElasticGeneration(group, options, held, patience);
    try {
      runProgram(generation);
      hasReturned |= !generation.isOver();
      generation.end();
      if (!generation.isOver()) {
        group.barrier();
        return true;
      }
    } catch (Exception | Error e) {
      boolean isLoss = isLoss(group, e);
      if (isLoss) {
        group.revoke("a rank was lost: " + e.getMessage());
      } else {
        group.abort("its program failed: " + e);
      }
      generation.abandon();
      if (!isLoss) {
        throw e;
      }
    }
    return false;
  }

  private void runProgram(ElasticGeneration generation) throws Exception {
    try {
      program.run(generation);
    } catch (ChangeOfMembers e) {
      LOG.log(Level.DEBUG, "{0}", e.getMessage());
    }
  }

  /** Returns whether the others can go on after a failure of this rank's program. */
  private static boolean isLoss(ProcessGroup group, Throwable failure) {
    Throwable agreed = group.failure().orElse(null);
    for (Throwable t = failure; t != null && agreed == null; t = t.getCause()) {
      agreed = t instanceof CollectiveException ? t : null;
    }
    return isLoss(group.rank(), agreed);
  }

  private static boolean isLoss(int rank, @Nullable Throwable failure) {
    return failure instanceof PeerFailedException
        || failure instanceof CollectiveTimeoutException
        || (failure instanceof AbortedException aborted && aborted.failedRank().orElse(-1) != rank);
  }

  private ProcessGroup change(ProcessGroup group) {
    Duration patience = options.patience();
    Duration each = options.timeout().orElseGet(group::timeout);
    ReconfigureOptions rules =
        ReconfigureOptions.DEFAULT
            .withSize(hasReturned ? 1 : options.fewest(), options.most())
            .withTimeout(each.compareTo(patience) < 0 ? each : patience);
    Time time = options.group().time();
    long deadline = time.deadline(patience);
    while (true) {
      try {
        ProcessGroup next = group.reconfigure(rules);
        LOG.log(
            Level.INFO,
            "rank {0} of {1} continues in group {2}",
            next.rank(),
            next.size(),
            next.name());
        return next;
      } catch (TooFewRanksException | BackendException | CollectiveException e) {
        if (group.isClosed() || deadline - time.nanoTime() <= 0) {
          throw e;
        }
        LOG.log(Level.INFO, "rank {0}: {1}; it tries again", group.rank(), e.getMessage());
      }
    }
  }
}
