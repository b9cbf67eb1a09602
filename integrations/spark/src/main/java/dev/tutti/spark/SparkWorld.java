package dev.tutti.spark;

import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.RendezvousException;
import java.util.Iterator;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;

/**
 * A {@link ProcessGroup} formed from the tasks of a Spark barrier stage: partition <i>i</i> is rank
 * <i>i</i>. Ranks may be threads of one executor, or executors on one or several hosts.
 *
 * <p>Rank 0 serves the store on a free port of the address that Spark has for its executor, and
 * sends the port and a new job token to the others by {@link BarrierTaskContext#allGather}. A task
 * that fails or is killed ends the group on all ranks with the reason; the attempt that Spark then
 * starts meets at its own store. Spark settings that begin with {@code spark.tutti.} are passed to
 * Tutti: {@code spark.tutti.timeout} is {@code TUTTI_TIMEOUT}, and {@code
 * spark.tutti.GLOO_SOCKET_IFNAME} is the setting of that name.
 */
public final class SparkWorld {
  private SparkWorld() {}

  /**
   * Joins the group of this barrier stage; all its tasks call this, the same number of times. The
   * group is closed when the task ends, at the latest.
   *
   * @return the group of all tasks of the stage
   * @throws IllegalStateException if the thread is not running a task of a barrier stage, Spark did
   *     not start all tasks of the stage or has the results of some in its cache, or Spark killed
   *     the task in the meantime
   * @throws IllegalArgumentException if a setting cannot be read
   * @throws RendezvousException if the ranks do not meet in time
   * @throws PeerFailedException if another rank reports that it cannot join
   */
  public static ProcessGroup join() {
    return join(GroupOptions.DEFAULT);
  }

  /**
   * Joins the group of this barrier stage, as {@link #join()} does.
   *
   * @param options the backend, device, deadline and settings; these settings override those of
   *     Spark. Rank, size and the place to meet come from Spark.
   * @return the group of all tasks of the stage
   * @throws IllegalStateException if the thread is not running a task of a barrier stage, Spark did
   *     not start all tasks of the stage or has the results of some in its cache, or Spark killed
   *     the task in the meantime
   * @throws IllegalArgumentException if a setting cannot be read, or the options set the rank, the
   *     size, the store or the place to meet
   * @throws RendezvousException if the ranks do not meet in time
   * @throws PeerFailedException if another rank reports that it cannot join
   */
  public static ProcessGroup join(GroupOptions options) {
    if (!(TaskContext.get() instanceof BarrierTaskContext task)) {
      throw new IllegalStateException(
          "SparkWorld.join() needs a task of a barrier stage: call it inside"
              + " rdd.barrier().mapPartitions(…), or use SparkWorld.mapPartitions");
    }
    if (options.rank().isPresent()
        || options.size().isPresent()
        || options.store().isPresent()
        || options.initMethod().isPresent()) {
      throw new IllegalArgumentException(
          "rank, size, store and init method come from Spark; leave them out of " + options);
    }
    return new BarrierRendezvous(task).join(options);
  }

  /**
   * Runs a function on each partition of an RDD, all at the same time and as ranks of one group.
   * Without this method, Java code has to write {@code rdd.rdd().barrier().mapPartitions(…)} with
   * Scala functions.
   *
   * @param rdd the RDD, with one partition for each rank; Spark needs a free core for each
   * @param body the function that each rank runs
   * @param <T> the type of the input rows
   * @param <R> the type of the output rows
   * @return the rows that all ranks return; nothing runs until an action requests them, and each
   *     action runs everything again unless rows are cached after a shuffle, such as {@code
   *     repartition(1)}. If these rows themselves are cached and Spark loses some, the action
   *     throws. After a failure, Spark restarts the ranks only if a shuffle follows
   */
  public static <T, R> JavaRDD<R> mapPartitions(JavaRDD<T> rdd, WorldFunction<T, R> body) {
    return BarrierBody.run(rdd, body);
  }

  /**
   * Runs a body as a rank; this is the part of {@link #mapPartitions} that runs on the executor.
   */
  static <T, R> Iterator<R> runBody(WorldFunction<T, R> body, Iterator<T> rows) {
    try {
      return body.call(join(), rows);
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException("the body of a rank failed: " + e, e);
    }
  }
}
