package dev.tutti.checkpoint;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A rank of {@link StoppedElasticTest}: it does some steps, and prints with how many ranks it
 * ended. Arguments: the folder of checkpoints, how many steps there are, at which of its saves this
 * process stops, and at which of its loads; -1 for never.
 */
final class StoppedElasticMain {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private final long steps;
  private int savesLeft;
  private int loadsLeft;
  private String end = "";

  private StoppedElasticMain(long steps, int savesLeft, int loadsLeft) {
    this.steps = steps;
    this.savesLeft = savesLeft;
    this.loadsLeft = loadsLeft;
  }

  public static void main(String[] args) throws Exception {
    StoppedElasticMain main =
        new StoppedElasticMain(
            Long.parseLong(args[1]), Integer.parseInt(args[2]), Integer.parseInt(args[3]));
    ElasticOptions options =
        ElasticOptions.DEFAULT.withTimeout(TIMEOUT).withCheckpoints(Path.of(args[0]), 1);
    Elastic.run(ProcessGroup.init(GroupOptions.DEFAULT), options, main::run);
    System.out.println(main.end);
  }

  private void run(ElasticGeneration generation) {
    ProcessGroup group = generation.group();
    group.setTimeout(TIMEOUT);
    Sums sums = new Sums();
    Contents contents = sums.contents().value("rank", this::saved, this::loaded);
    long step = generation.restore(contents);
    for (; step < steps; step++) {
      sums.step(group, step);
      generation.commit(step + 1);
    }
    end = "END %d ranks, step %d: %s".formatted(group.size(), step, sums);
  }

  private String saved() {
    stopIf(savesLeft-- == 0);
    return "";
  }

  private void loaded(@Nullable List<String> all) {
    stopIf(loadsLeft-- == 0);
  }

  private static void stopIf(boolean isDue) {
    if (isDue) {
      try {
        System.out.println("STOPS");
        String pid = Long.toString(ProcessHandle.current().pid());
        new ProcessBuilder("kill", "-STOP", pid).start().waitFor();
      } catch (IOException | InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
