package dev.tutti.spark;

import java.util.stream.IntStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockInfo;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.RDDBlockId;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Checks that all tasks of a barrier stage join, before one waits for the others; Spark limits that
 * wait by 365 days.
 *
 * <p>Two things keep tasks away. Spark may start only some of them again if a task fails when
 * others are about to end (SPARK-59094). And a task whose result is cached reads it and ends. What
 * this task computes for the cache is what it holds a write lock on: the result of the barrier
 * stage, or of what follows it in the same stage. The input has been read by then, and its lock
 * released. No task of this attempt can have cached a result yet, as none can before all have
 * joined.
 */
final class AllTasks {
  private AllTasks() {}

  /**
   * Checks the stage of a task.
   *
   * @throws IllegalStateException if there is a task that does not join
   */
  static void requireIn(BarrierTaskContext task) {
    int started = task.getTaskInfos().length;
    int size = task.numPartitions();
    if (started != size) {
      throw new IllegalStateException(
          ("rank %d cannot join: Spark started %d of the %d tasks of stage %d.%d, as it counts the"
               + " others as done in an earlier attempt, which failed; it starts all of them after"
               + " this failure")
              .formatted(
                  task.partitionId(), started, size, task.stageId(), task.stageAttemptNumber()));
    }
    BlockManager blocks = SparkEnv.get().blockManager();
    Iterator<Tuple2<BlockId, BlockInfo>> held = blocks.blockInfoManager().entries();
    while (held.hasNext()) {
      Tuple2<BlockId, BlockInfo> each = held.next();
      if (each._1() instanceof RDDBlockId computed
          && each._2().writerTask() == task.taskAttemptId()) {
        requireNotCached(blocks, computed, size);
      }
    }
  }

  private static void requireNotCached(BlockManager blocks, RDDBlockId computed, int size) {
    BlockId[] all =
        IntStream.range(0, size)
            .mapToObj(partition -> new RDDBlockId(computed.rddId(), partition))
            .toArray(BlockId[]::new);
    var locations = blocks.master().getLocations(all);
    for (int other = 0; other < size; other++) {
      if (other != computed.splitIndex() && !locations.apply(other).isEmpty()) {
        throw new IllegalStateException(
            ("rank %d cannot join: the result of rank %d is cached, so that rank does not run, but"
                    + " that of rank %1$d is not. Unpersist RDD %d; cache what follows a shuffle"
                    + " instead, as in mapPartitions(…).repartition(%d).persist(…)")
                .formatted(computed.splitIndex(), other, computed.rddId(), size));
      }
    }
  }
}
