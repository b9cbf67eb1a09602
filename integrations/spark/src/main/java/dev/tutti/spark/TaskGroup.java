package dev.tutti.spark;

import dev.tutti.GroupListener;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.TuttiException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.apache.spark.util.TaskInterruptListener;
import org.jspecify.annotations.Nullable;

/**
 * The listeners that end a group together with its task.
 *
 * <p>Spark kills the tasks of a failed barrier stage without interrupting them, and an interrupt
 * would not end a collective either. The kill listener therefore aborts the group, on the thread
 * that kills, and any thread waiting in a collective of the group throws. While there is no group
 * yet, the listener closes the store, through which the ranks wait for each other, and interrupts
 * the joining thread, which might otherwise try until its deadline to connect to a server that is
 * gone. A failure aborts the group with the exception before the completion closes it, so the other
 * ranks receive the cause before they miss this one.
 *
 * <p>Spark kills the tasks of a stage as soon as one of them failed or its executor is gone, and
 * that is often before the group has noticed it. An abort would then blame this rank. So such a
 * kill first leaves the group {@link #GRACE} to find the rank that failed; only a host that is lost
 * keeps its connections that long.
 */
final class TaskGroup
    implements TaskInterruptListener, TaskFailureListener, TaskCompletionListener {
  private static final Logger LOG = System.getLogger(TaskGroup.class.getName());

  /** What Spark says to the other tasks of a stage when one has failed. */
  private static final String OF_ANOTHER_TASK = " from barrier stage ";

  private static final Duration GRACE = Duration.ofSeconds(10);

  private final BarrierStore store;
  private final String task;
  private final CountDownLatch ended = new CountDownLatch(1);
  private @Nullable Thread joining = Thread.currentThread();
  private @Nullable ProcessGroup group;
  private @Nullable String killed;

  private TaskGroup(TaskContext context, BarrierStore store) {
    this.store = store;
    this.task =
        "task %d (partition %d of stage %d.%d)"
            .formatted(
                context.taskAttemptId(),
                context.partitionId(),
                context.stageId(),
                context.stageAttemptNumber());
  }

  /**
   * Joins a group that ends with a task.
   *
   * @param context the context of the task, on whose thread this is called
   * @param store the store at which the group meets; closed with the task
   * @param options the options, which say where the store is
   * @throws IllegalStateException if Spark killed the task in the meantime
   */
  static ProcessGroup join(TaskContext context, BarrierStore store, GroupOptions options) {
    TaskGroup end = new TaskGroup(context, store);
    context.addTaskCompletionListener(end);
    context.addTaskFailureListener(end);
    context.addTaskInterruptListener(end);
    ProcessGroup joined = null;
    RuntimeException failure = null;
    try {
      joined = ProcessGroup.init(options);
    } catch (RuntimeException e) {
      failure = e;
    }
    String reason = end.joined(joined);
    if (joined == null) {
      throw reason == null && failure != null
          ? failure
          : new IllegalStateException(reason, failure);
    }
    if (reason != null) {
      joined.abort(reason);
    }
    return joined;
  }

  @Override
  public void onTaskInterrupted(TaskContext context, String reason) {
    ProcessGroup joined;
    String text = task + " was killed: " + reason;
    synchronized (this) {
      killed = text;
      joined = group;
      if (joining != null) {
        joining.interrupt();
      }
    }
    if (joined == null) {
      store.close();
    } else if (reason.contains(OF_ANOTHER_TASK)) {
      Thread.ofVirtual().name("spark-kill").start(() -> abortUnlessItFails(joined, text));
    } else {
      joined.abort(text);
    }
  }

  private void abortUnlessItFails(ProcessGroup joined, String text) {
    GroupListener listener =
        new GroupListener() {
          @Override
          public void failed(TuttiException cause) {
            ended.countDown();
          }
        };
    try (Registration _ = joined.addListener(listener)) {
      if (joined.failure().isEmpty() && !ended.await(GRACE.toNanos(), TimeUnit.NANOSECONDS)) {
        joined.abort(text);
      }
    } catch (InterruptedException e) {
      throw new AssertionError("nobody interrupts this thread", e);
    }
  }

  @Override
  public void onTaskFailure(TaskContext context, Throwable error) {
    ProcessGroup joined = group();
    if (joined != null) {
      joined.abort(task + " failed: " + error);
    }
  }

  @Override
  public void onTaskCompletion(TaskContext context) {
    ended.countDown();
    ProcessGroup joined = group();
    try {
      if (joined != null) {
        joined.close();
      }
    } catch (RuntimeException e) {
      // An exception from here would fail a task that has done its work.
      LOG.log(Level.WARNING, task + ": its group could not be closed", e);
    } finally {
      store.close();
    }
  }

  /** Returns the reason why the task was killed while it joined, or null if it was not killed. */
  private synchronized @Nullable String joined(@Nullable ProcessGroup joined) {
    joining = null;
    group = joined;
    if (killed != null) {
      // The interrupt came from the kill, and does not matter after the join.
      Thread.interrupted();
    }
    return killed;
  }

  private synchronized @Nullable ProcessGroup group() {
    return group;
  }
}
