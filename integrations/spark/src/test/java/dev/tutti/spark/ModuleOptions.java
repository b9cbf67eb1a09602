package dev.tutti.spark;

import org.apache.spark.launcher.JavaModuleOptions;

/** Prints the options that Spark's launcher gives to each JVM; for scripts. */
final class ModuleOptions {
  private ModuleOptions() {}

  public static void main(String[] args) {
    System.out.println(JavaModuleOptions.defaultModuleOptions());
  }
}
