package dev.tutti.spark;

import java.io.Serializable;
import org.apache.spark.api.java.JavaRDD;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/**
 * A {@link WorldFunction}, as the Scala function that Spark runs.
 *
 * @param <T> the type of the input rows
 * @param <R> the type of the output rows
 */
final class BarrierBody<T, R> extends AbstractFunction1<Iterator<T>, Iterator<R>>
    implements Serializable {
  private static final long serialVersionUID = 1;

  private final WorldFunction<T, R> body;

  private BarrierBody(WorldFunction<T, R> body) {
    this.body = body;
  }

  static <T, R> JavaRDD<R> run(JavaRDD<T> rdd, WorldFunction<T, R> body) {
    return rdd.rdd().barrier().mapPartitions(new BarrierBody<>(body), false, anyTag()).toJavaRDD();
  }

  @Override
  public Iterator<R> apply(Iterator<T> rows) {
    return CollectionConverters.asScala(
        SparkWorld.runBody(body, CollectionConverters.asJava(rows)));
  }

  /** Returns the tag that Spark's own Java API uses for a type erased by Java. */
  @SuppressWarnings("unchecked")
  private static <R> ClassTag<R> anyTag() {
    return (ClassTag<R>) ClassTag$.MODULE$.AnyRef();
  }
}
