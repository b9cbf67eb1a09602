package dev.tutti.cli.unload;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import jdk.jfr.Recording;

/**
 * Loads Tutti in a class loader of its own, uses each part of it, drops the loader, and does so
 * again, while the JVM's Flight Recorder runs from the middle on. Prints how many loaders the
 * collector freed. Its arguments are the number of loaders and a folder.
 */
public final class UnloadMain {
  private static final String TENSORS = "memfd:tutti-tensors";
  private static final long LIMIT_NANOS = 60_000_000_000L;

  private UnloadMain() {}

  public static void main(String[] args) throws Exception {
    int count = Integer.parseInt(args[0]);
    Path folder = Path.of(args[1]);
    List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
    try (ThreadPoolExecutor pool =
            new ThreadPoolExecutor(2, 2, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
        Recording recording = new Recording()) {
      // Now, since a thread keeps the context class loader of the thread that starts it.
      pool.prestartAllCoreThreads();
      for (int i = 0; i < count; i++) {
        if (i == count / 2) {
          recording.start();
        }
        loaders.add(use(pool, Files.createTempDirectory(folder, "loader"), i % 10 == 0));
      }
      long limit = System.nanoTime() + LIMIT_NANOS;
      while (alive(loaders) + mapped() > 0 && System.nanoTime() - limit < 0) {
        System.gc();
      }
      System.out.println(
          "freed " + (count - alive(loaders)) + " of " + count + ", " + mapped() + " mapped");
      if (args.length > 2) {
        ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
            .dumpHeap(args[2], true);
      }
    }
  }

  /** Counts the memory for tensors that the loaders have mapped, and its files. */
  private static long mapped() throws IOException {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"));
        Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      return maps.filter(line -> line.contains(TENSORS)).count()
          + descriptors.filter(UnloadMain::isOfTensors).count();
    }
  }

  private static boolean isOfTensors(Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().contains(TENSORS);
    } catch (IOException e) {
      return false;
    }
  }

  private static long alive(List<WeakReference<ClassLoader>> loaders) {
    return loaders.stream().filter(loader -> loader.get() != null).count();
  }

  private static WeakReference<ClassLoader> use(
      ExecutorService pool, Path folder, boolean withAeron) throws Exception {
    List<URL> path = new ArrayList<>();
    for (String entry : System.getProperty("tutti.path").split(java.io.File.pathSeparator)) {
      path.add(Path.of(entry).toUri().toURL());
    }
    try (URLClassLoader loader =
        new URLClassLoader(path.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
      Thread user =
          new Thread(
              () -> {
                try {
                  Class<?> parts = loader.loadClass("dev.tutti.cli.unload.EveryPart");
                  parts
                      .getMethod("use", ExecutorService.class, Path.class, boolean.class)
                      .invoke(null, pool, folder, withAeron);
                } catch (ReflectiveOperationException e) {
                  throw new LinkageError(e.toString(), e);
                }
              });
      user.setContextClassLoader(loader);
      user.start();
      user.join();
      return new WeakReference<>(loader);
    }
  }
}
