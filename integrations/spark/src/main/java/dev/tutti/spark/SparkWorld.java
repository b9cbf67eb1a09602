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
 * Makes a {@link ProcessGroup} of the tasks of a Spark barrier stage: partition <i>i</i> is rank
 * <i>i</i>. Ranks may be threads of one executor, or executors of one host or several.
 *
 * <p>Rank 0 serves the store on a free port of the address at which Spark knows its executor, and
 * tells the others port and a new job token by {@link BarrierTaskContext#allGather}. A task that
 * fails or is killed ends the group on all ranks with the reason; the attempt that Spark starts
 * then meets at a store of its own. Settings of Spark that begin with {@code spark.tutti.} are
 * Tutti's: {@code spark.tutti.timeout} is {@code TUTTI_TIMEOUT}, and {@code
 * spark.tutti.GLOO_SOCKET_IFNAME} is the setting of that name.
 */
public final class SparkWorld {
  private SparkWorld() {}

  /**
   * Joins the group of this barrier stage; all its tasks call it, equally often. The group is
   * closed when the task ends, at the latest.
   *
   * @return the group of all tasks of the stage
   * @throws IllegalStateException if the thread runs no task of a barrier stage, or Spark killed
   *     the task meanwhile
   * @throws IllegalArgumentException if a setting cannot be read
   * @throws RendezvousException if the ranks do not meet in time
   * @throws PeerFailedException if another rank says that it cannot join
   */
  public static ProcessGroup join() {
    return join(GroupOptions.DEFAULT);
  }

  /**
   * Joins the group of this barrier stage, as {@link #join()} does.
   *
   * @param options backend, device, deadline and settings; settings that they give win over those
   *     of Spark. Where to meet, rank and size are Spark's to say.
   * @return the group of all tasks of the stage
   * @throws IllegalStateException if the thread runs no task of a barrier stage, or Spark killed
   *     the task meanwhile
   * @throws IllegalArgumentException if a setting cannot be read, or the options say rank, size,
   *     store or place
   * @throws RendezvousException if the ranks do not meet in time
   * @throws PeerFailedException if another rank says that it cannot join
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
   * Runs a function on each partition of an RDD, all at once and as ranks of one group. Without
   * this, Java has to write {@code rdd.rdd().barrier().mapPartitions(…)} with functions of Scala.
   *
   * @param rdd has as many partitions as there shall be ranks; Spark needs a free core for each
   * @param body what each rank does
   * @param <T> type of the rows that come in
   * @param <R> type of the rows that go out
   * @return the rows that all ranks return; nothing runs before an action asks for them, and each
   *     action runs all again unless they are cached. After a failure Spark starts the ranks again
   *     only where a shuffle follows, such as {@code repartition(1)}
   */
  public static <T, R> JavaRDD<R> mapPartitions(JavaRDD<T> rdd, WorldFunction<T, R> body) {
    return BarrierBody.run(rdd, body);
  }

  /** Runs a body as a rank; the part of {@link #mapPartitions} on the executor. */
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
