package dev.tutti.spark;

import java.io.Serializable;
import org.apache.spark.BarrierTaskContext;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** Lists the threads of groups in an executor, from a barrier stage that creates no group. */
final class ThreadNames extends AbstractFunction1<Iterator<Integer>, Iterator<String>>
    implements Serializable {
  static final ClassTag<String> TAG = ClassTag$.MODULE$.apply(String.class);

  private static final long serialVersionUID = 1;

  @Override
  public Iterator<String> apply(Iterator<Integer> rows) {
    BarrierTaskContext.get().barrier();
    return CollectionConverters.asScala(Bodies.threadsOfGroups().iterator());
  }
}
