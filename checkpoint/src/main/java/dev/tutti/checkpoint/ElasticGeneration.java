package dev.tutti.checkpoint;

import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.NioDisk;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.util.OptionalLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A time in which the ranks of an {@linkplain Elastic elastic} job stay the same. One thread at a
 * time calls the methods, on all ranks in the same order.
 */
public final class ElasticGeneration {
  private static final System.Logger LOG = System.getLogger(ElasticGeneration.class.getName());

  private final ProcessGroup group;
  private final ElasticOptions options;
  private final HeldState held;
  private final FolderOwner.Patience patience;
  private final Tensor agreed = Tensor.of(0L, 0L, 0L, 0L);
  private @Nullable Contents state;
  private @Nullable ProcessGroup beside;
  private @Nullable Checkpoints checkpoints;
  private long step = -1;
  private boolean isOver;

  /**
   * Creates a generation.
   *
   * @param patience how long to wait for the checkpoints of a rank that was left out, and may stand
   *     still
   */
  ElasticGeneration(
      ProcessGroup group, ElasticOptions options, HeldState held, FolderOwner.Patience patience) {
    this.group = group;
    this.options = options;
    this.held = held;
    this.patience = patience;
  }

  /** Returns the group of the ranks; {@link Elastic} closes it. */
  public ProcessGroup group() {
    return group;
  }

  /**
   * Puts all ranks into the same state: that after the last step that all ranks had done, which a
   * rank has that was there, else that of the last checkpoint, else that of rank 0. Sections that
   * are divided among the ranks always come from the last checkpoint.
   *
   * @param contents the state, the same sections on all ranks; later calls of {@link #commit} copy
   *     it
   * @return how many steps are done
   * @throws CheckpointException on all ranks, if their state differs afterwards, or a checkpoint
   *     cannot be loaded
   * @throws IllegalArgumentException if a section is divided among the ranks, and the options give
   *     no folder
   */
  public long restore(Contents contents) {
    if (step >= 0) {
      throw new IllegalStateException("the state was restored to step " + step);
    }
    boolean hasParts = HeldState.hasParts(contents);
    Path folder = options.folder();
    if (hasParts && folder == null) {
      throw new IllegalArgumentException(
          "a part of the state is lost with its rank, so the options need a folder for"
              + " checkpoints");
    }
    if (hasParts) {
      held.clear();
    }
    long last = held.restore(group, contents);
    if (folder != null) {
      last = open(folder, contents, last);
    } else if (last < 0) {
      HeldState.begin(group, contents);
    }
    state = contents;
    step = Math.max(last, 0);
    held.take(step, contents);
    held.requireAlike(group);
    return step;
  }

  /** Opens the checkpoints, and loads the last one if no rank has the state; returns its step. */
  private long open(Path folder, Contents contents, long last) {
    ProcessGroup own = Checkpoints.ownGroup(group);
    beside = own;
    Checkpoints opened =
        together(own, () -> Checkpoints.open(own, folder, new NioDisk(), patience));
    checkpoints = opened;
    if (last >= 0) {
      return last;
    }
    OptionalLong loaded = together(own, () -> opened.loadLatest(contents));
    if (loaded.isEmpty()) {
      HeldState.begin(group, contents);
      if (HeldState.hasParts(contents)) {
        await(own, opened.save(0, contents));
      }
    }
    return loaded.orElse(0);
  }

  /** Waits in the group of the checkpoints, as all ranks do. */
  private <T> T together(ProcessGroup own, Supplier<T> wait) {
    return new RollCall(group, own, options.group().time()).during(wait);
  }

  private void await(ProcessGroup own, Saving saving) {
    Saving _ =
        together(
            own,
            () -> {
              saving.await();
              return saving;
            });
  }

  /**
   * Notes that this rank has done a step, and waits until all ranks have. If processes wait to
   * join, or a rank is lost, it throws an exception that the caller lets pass; {@link Elastic} then
   * calls the program again, with another group.
   *
   * @param done how many steps are done, more than before, the same on all ranks
   * @throws IllegalStateException on all ranks, if they have done different numbers of steps; or if
   *     the state was not {@linkplain #restore restored}
   */
  public void commit(long done) {
    Contents contents = state;
    if (contents == null) {
      throw new IllegalStateException("call restore(contents) before commit");
    }
    if (done <= step) {
      throw new IllegalArgumentException("step %d cannot come after step %d".formatted(done, step));
    }
    boolean isWanted = group.size() < options.most() && group.newcomers() > 0;
    agreed.setLong(0, done);
    agreed.setLong(1, -done);
    agreed.setLong(2, isWanted ? 1 : 0);
    agreed.setLong(3, checkpoints != null && checkpoints.isSaving() ? 1 : 0);
    group.allReduce(agreed, ReduceOp.MAX);
    if (agreed.getLong(0) != done || agreed.getLong(1) != -done) {
      throw new IllegalStateException(
          "rank %d/%d has done %d steps, and others %d to %d"
              .formatted(group.rank(), group.size(), done, -agreed.getLong(1), agreed.getLong(0)));
    }
    step = done;
    held.take(done, contents);
    isOver = agreed.getLong(2) > 0;
    save(contents);
    if (isOver) {
      throw new ChangeOfMembers();
    }
  }

  private void save(Contents contents) {
    Checkpoints saver = checkpoints;
    ProcessGroup own = beside;
    boolean isKept = isOver && HeldState.hasParts(contents);
    if (saver == null || own == null || (!isKept && step % options.every() != 0)) {
      return;
    }
    if (agreed.getLong(3) > 0) {
      awaitLast(own, saver);
    }
    Saving saving = saver.save(step, contents);
    if (isKept) {
      await(own, saving);
    }
  }

  private void awaitLast(ProcessGroup own, Checkpoints saver) {
    Checkpoints _ =
        together(
            own,
            () -> {
              saver.awaitLast();
              return saver;
            });
  }

  /** Returns whether members change because some wait to join. */
  boolean isOver() {
    return isOver;
  }

  /** Waits for the last save, and closes the checkpoints, as all ranks do. */
  void end() {
    Checkpoints saver = checkpoints;
    ProcessGroup own = beside;
    if (saver != null && own != null) {
      awaitLast(own, saver);
      saver.close();
    }
  }

  /** Ends without the other ranks, of which some may be gone; a save that is not over fails. */
  void abandon() {
    Checkpoints saver = checkpoints;
    ProcessGroup own = beside;
    if (own != null) {
      own.revoke("the ranks of the job change, or this one leaves");
    }
    if (saver != null) {
      try {
        saver.close();
      } catch (CheckpointException e) {
        LOG.log(Level.DEBUG, "rank {0}: {1}", group.rank(), e.getMessage());
      }
    }
  }
}
