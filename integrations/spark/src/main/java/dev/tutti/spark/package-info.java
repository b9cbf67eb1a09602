/**
 * Groups of the tasks of a Spark barrier stage.
 *
 * <p>{@link dev.tutti.spark.SparkWorld} is what programs call.
 */
@NullMarked
package dev.tutti.spark;

import org.jspecify.annotations.NullMarked;
