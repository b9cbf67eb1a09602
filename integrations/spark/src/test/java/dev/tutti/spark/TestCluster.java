package dev.tutti.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;

/** Starts Spark for tests: in this JVM, or with executors in separate processes. */
public final class TestCluster {
  private TestCluster() {}

  /** Starts Spark; the caller must close the context. */
  public static JavaSparkContext start(String master, Map<String, String> settings) {
    SparkConf conf =
        new SparkConf(false)
            .setMaster(master)
            .setAppName("tutti-spark-tests")
            .set("spark.ui.enabled", "false")
            .set("spark.driver.host", "127.0.0.1")
            .set("spark.driver.bindAddress", "127.0.0.1")
            .set("spark.executor.extraClassPath", classPath())
            .set("spark.executor.extraJavaOptions", "-XX:+UseSerialGC")
            .set("spark.executorEnv.JAVA_HOME", System.getProperty("java.home"))
            // Otherwise Spark's launcher looks for the folders of its own build.
            .set("spark.executorEnv.SPARK_SCALA_VERSION", "2.13")
            // When a job that started before a lost executor was back counts the cores again.
            .set("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
            // The job would fail after 40 checks; the process of an executor may start later.
            .set("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "600");
    settings.forEach(conf::set);
    if (master.startsWith("local-cluster")) {
      layOutHome();
    }
    JavaSparkContext context = new JavaSparkContext(conf);
    context.setLogLevel("ERROR");
    return context;
  }

  static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /** Creates the folder that Spark's worker requires; the jars come from the class path. */
  private static void layOutHome() {
    String home = System.getenv("SPARK_HOME");
    if (home == null) {
      throw new IllegalStateException(
          "set SPARK_HOME to a folder that need not exist, as the pom does");
    }
    try {
      Files.createDirectories(Path.of(home, "jars"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
