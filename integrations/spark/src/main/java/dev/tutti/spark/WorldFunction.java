package dev.tutti.spark;

import dev.tutti.ProcessGroup;
import java.io.Serializable;
import java.util.Iterator;

/**
 * The body of a task that is a rank of a group; Spark sends it to the executors.
 *
 * @param <T> the type of the input rows
 * @param <R> the type of the output rows
 */
@FunctionalInterface
public interface WorldFunction<T, R> extends Serializable {
  /**
   * Runs the body on the thread of the task.
   *
   * @param group the group of all tasks of the stage; it stays open until the task ends, so the
   *     result may be lazy
   * @param rows the rows of the task's partition
   * @return the rows of the result
   * @throws Exception to fail the task, and so the stage; the group fails on all ranks with this
   *     cause
   */
  Iterator<R> call(ProcessGroup group, Iterator<T> rows) throws Exception;
}
