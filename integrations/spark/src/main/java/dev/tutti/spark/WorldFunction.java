package dev.tutti.spark;

import dev.tutti.ProcessGroup;
import java.io.Serializable;
import java.util.Iterator;

/**
 * The body of a task that is a rank of a group; Spark sends it to the executors.
 *
 * @param <T> type of the rows that come in
 * @param <R> type of the rows that go out
 */
@FunctionalInterface
public interface WorldFunction<T, R> extends Serializable {
  /**
   * Runs on the thread of the task.
   *
   * @param group of all tasks of the stage; stays open until the task ends, so the result may be
   *     lazy
   * @param rows of the task's partition
   * @return the rows of the result
   * @throws Exception to fail the task, the group on all ranks with this cause, and so the stage
   */
  Iterator<R> call(ProcessGroup group, Iterator<T> rows) throws Exception;
}
