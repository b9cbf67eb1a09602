package dev.tutti.spi;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.function.BooleanSupplier;

/**
 * Advice for users who miss a service that {@link java.util.ServiceLoader} does not find.
 *
 * @param provider the name of the class that provides the service
 * @param jar the name of the jar with that class
 * @param module the name of the module with that class
 */
public record ServiceAdvice(String provider, String jar, String module) {
  /**
   * Returns what to do, as a clause without a period: raise the limit on open files if none can be
   * opened, merge files of services if the class is there and its declaration is not, else add the
   * jar.
   *
   * @param service the type of the service
   * @param seeker a class that looks for the service, from the same class path or module path
   */
  public String of(Class<?> service, Class<?> seeker) {
    return of(service, seeker, ServiceAdvice::canOpenFiles);
  }

  String of(Class<?> service, Class<?> seeker, BooleanSupplier canOpenFiles) {
    if (!canOpenFiles.getAsBoolean()) {
      return "this process may open no more files, and so cannot read its jars; raise the limit"
          + " with 'ulimit -n'";
    }
    if (seeker.getModule().isNamed()) {
      return "put the jar %s on the module path and add the module %s, by 'requires' or --add-modules"
          .formatted(jar, module);
    }
    if (isThere(seeker.getClassLoader())) {
      return ("%s is there, but no file META-INF/services/%s names it; where several jars are made"
              + " into one, merge these files")
          .formatted(provider, service.getName());
    }
    return "add the jar " + jar;
  }

  private boolean isThere(ClassLoader loader) {
    try {
      Class<?> _ = Class.forName(provider, false, loader);
      return true;
    } catch (ClassNotFoundException | LinkageError e) {
      return false;
    }
  }

  private static boolean canOpenFiles() {
    Path any = Path.of(System.getProperty("java.home"), "release");
    if (!Files.exists(any)) {
      return true;
    }
    try (FileChannel _ = FileChannel.open(any, StandardOpenOption.READ)) {
      return true;
    } catch (IOException e) {
      return false;
    }
  }
}
