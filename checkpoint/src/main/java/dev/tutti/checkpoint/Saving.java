package dev.tutti.checkpoint;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** A save that runs beside training. Any thread may call the methods. */
public final class Saving {
  private final long step;
  private final CompletableFuture<Void> copied;
  private final CompletableFuture<Void> result;
  private volatile boolean observed;

  Saving(long step, CompletableFuture<Void> copied, CompletableFuture<Void> result) {
    this.step = step;
    this.copied = copied;
    this.result = result;
  }

  /** Returns the step that is saved. */
  public long step() {
    return step;
  }

  /** Returns whether the save has ended, well or not. */
  public boolean isDone() {
    return result.isDone();
  }

  /**
   * Waits until the program may change the tensors on devices that {@link Checkpoints#saveBeside}
   * saves, also if the save fails.
   */
  public void awaitCopied() {
    copied.join();
  }

  /**
   * Waits until the checkpoint is published on all ranks: a crash of any process or host after this
   * does not lose it.
   *
   * @throws CheckpointException if a rank could not save its share
   */
  public void await() {
    observed = true;
    try {
      result.join();
    } catch (CompletionException e) {
      Throwable cause = e.getCause();
      throw new CheckpointException(
          cause instanceof CheckpointException
              ? String.valueOf(cause.getMessage())
              : "saving step %d failed: %s".formatted(step, cause),
          cause);
    }
  }

  /** Waits for the end, whatever it is. */
  void awaitEnd() {
    result.exceptionally(e -> null).join();
  }

  /** Waits for the end, and throws a failure that was not thrown before. */
  void end() {
    if (observed) {
      awaitEnd();
    } else {
      await();
    }
  }
}
