/**
 * Process groups formed from the tasks of a Spark barrier stage.
 *
 * <p>Begin with {@link dev.tutti.spark.SparkWorld}, which programs call:
 *
 * {@snippet file="dev/tutti/spark/SparkSnippets.java" region="world"}
 */
@NullMarked
package dev.tutti.spark;

import org.jspecify.annotations.NullMarked;
