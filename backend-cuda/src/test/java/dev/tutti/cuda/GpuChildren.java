package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs the ranks of a test as processes. */
final class GpuChildren {
  private static final int RANKS = 2;
  private static final int LIMIT_SECONDS = 240;

  private GpuChildren() {}

  /**
   * Runs both ranks until they exit, and kills them after four minutes.
   *
   * @param directory the directory for their output and the rendezvous file
   * @param main the main class of each; its arguments are the file, the rank, and {@code last}
   * @param last the last argument
   * @return the output of each
   */
  static List<String> run(Path directory, Class<?> main, String last) throws Exception {
    List<Process> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < RANKS; r++) {
        ranks.add(
            new ProcessBuilder(
                    ProcessHandle.current().info().command().orElseThrow(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path"),
                    main.getName(),
                    directory.resolve("store").toString(),
                    String.valueOf(r),
                    last)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve("out" + r).toFile())
                .start());
      }
      List<String> texts = new ArrayList<>();
      for (int r = 0; r < RANKS; r++) {
        boolean ended = ranks.get(r).waitFor(LIMIT_SECONDS, TimeUnit.SECONDS);
        String text = Files.readString(directory.resolve("out" + r), UTF_8);
        assertThat(ended).as("whether rank " + r + " ends: " + text).isTrue();
        texts.add(text);
      }
      return texts;
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
  }
}
