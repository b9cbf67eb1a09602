package dev.tutti.store.file;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** A child process that uses a store file. */
final class FileStoreChild {
  private static final Duration TIMEOUT = Duration.ofMinutes(4);

  private FileStoreChild() {}

  /**
   * Starts a process whose threads write that many times beside the others, or wait if the count is
   * -1.
   */
  static Process start(String nativeAccess, Path file, int worldSize, int each, int threads)
      throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            nativeAccess,
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-cp",
            System.getProperty("java.class.path"),
            FileStoreChild.class.getName(),
            file.toString(),
            Integer.toString(worldSize),
            Integer.toString(each),
            Integer.toString(threads))
        .redirectError(ProcessBuilder.Redirect.appendTo(errors(file).toFile()))
        .start();
  }

  /** Returns the file beside the store file to which all children write their errors. */
  static Path errors(Path file) {
    return file.resolveSibling("errors");
  }

  /** Runs the child. */
  public static void main(String[] args) {
    for (int thread = 0; thread < Integer.parseInt(args[3]); thread++) {
      Thread.ofPlatform().start(() -> use(args));
    }
  }

  private static void use(String[] args) {
    int worldSize = Integer.parseInt(args[1]);
    int each = Integer.parseInt(args[2]);
    try (FileStore store = new FileStore(Path.of(args[0]), worldSize, TIMEOUT)) {
      if (each < 0) {
        System.out.println("waiting");
        store.await(List.of("never"));
      }
      store.barrier("barrier", worldSize, TIMEOUT);
      for (int i = 0; i < each; i++) {
        store.add("count", 1);
        store.append("log", new byte[] {(byte) i});
        store.queuePush("queue", new byte[] {1});
        store.set("last", "value " + i);
      }
      store.barrier("barrier", worldSize, TIMEOUT);
      System.out.printf(
          "count %d, log %d, queue %d, last %s%n",
          store.add("count", 0),
          store.get("log").length,
          store.queueLength("queue"),
          new String(store.get("last"), StandardCharsets.UTF_8));
      store.barrier("barrier", worldSize, TIMEOUT);
    }
  }
}
