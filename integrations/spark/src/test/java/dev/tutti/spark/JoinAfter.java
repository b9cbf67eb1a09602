package dev.tutti.spark;

import java.io.Serializable;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaRDD;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/** A Scala body, which runs code before it joins. */
final class JoinAfter extends AbstractFunction1<Iterator<Integer>, Iterator<Integer>>
    implements Serializable {
  private static final long serialVersionUID = 1;

  private final WorldFunction<Integer, Integer> body;
  private final Before before;

  /** Code of a rank that has no group yet. */
  interface Before extends Serializable {
    void run(RetryTest.Place place, int rank);
  }

  private JoinAfter(WorldFunction<Integer, Integer> body, Before before) {
    this.body = body;
    this.before = before;
  }

  static JavaRDD<Integer> run(
      JavaRDD<Integer> rows, WorldFunction<Integer, Integer> body, Before before) {
    return rows.rdd()
        .barrier()
        .mapPartitions(new JoinAfter(body, before), false, JoinOfOne.TAG)
        .toJavaRDD();
  }

  @Override
  public Iterator<Integer> apply(Iterator<Integer> rows) {
    before.run(RetryTest.Place.BEFORE_JOIN, BarrierTaskContext.get().partitionId());
    return CollectionConverters.asScala(
        SparkWorld.runBody(body, CollectionConverters.asJava(rows)));
  }
}
