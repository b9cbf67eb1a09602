package dev.tutti.spark;

import java.io.Serializable;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.spark.BarrierTaskContext;
import org.jspecify.annotations.Nullable;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** Lets rank 0 join, while rank 1 takes part only in Spark's exchange; runs in the driver's JVM. */
final class JoinOfOne extends AbstractFunction1<Iterator<Integer>, Iterator<Integer>>
    implements Serializable {
  static final ClassTag<Integer> TAG = ClassTag$.MODULE$.apply(Integer.class);
  static final AtomicBoolean WAITING = new AtomicBoolean();
  static final AtomicReference<@Nullable RuntimeException> FAILURE = new AtomicReference<>();

  private static final long serialVersionUID = 1;

  static void forget() {
    WAITING.set(false);
    FAILURE.set(null);
  }

  @Override
  public Iterator<Integer> apply(Iterator<Integer> rows) {
    BarrierTaskContext task = BarrierTaskContext.get();
    try {
      if (task.partitionId() == 0) {
        SparkWorld.join();
      } else {
        task.allGather("");
        WAITING.set(true);
        Waiting.until("the task is killed", task::isInterrupted);
      }
    } catch (RuntimeException e) {
      FAILURE.set(e);
      throw e;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    return CollectionConverters.asScala(List.<Integer>of().iterator());
  }
}
