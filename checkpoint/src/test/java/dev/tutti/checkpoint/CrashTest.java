package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.disk.ModelDisk;
import dev.tutti.checkpoint.folder.CheckpointFolder;
import dev.tutti.contracts.TestTier;
import dev.tutti.fake.ThreadedWorld;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.ResourceLock;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests that a crash of all hosts at any moment loses no checkpoint that was awaited, and leaves
 * none that is half there.
 */
@ResourceLock("the log of saves")
class CrashTest {
  private static final long SEED = Long.getLong("tutti.crashSeed", 1);
  private static final int SCHEDULES =
      Integer.getInteger("tutti.crashes", TestTier.isFast() ? 100 : 1000);
  private static final int PER_TEST = 100;
  private static final int JOBS = 4;
  private static final int SAVES = 3;

  /** Reports each older checkpoint that remains because the disk failed. */
  private static final Logger REPORTS = Logger.getLogger(SaveRun.class.getName());

  @TempDir Path folder;

  @BeforeAll
  static void muteReports() {
    REPORTS.setLevel(Level.OFF);
  }

  @AfterAll
  static void unmuteReports() {
    REPORTS.setLevel(null);
  }

  static IntStream seeds() {
    return IntStream.range(0, Math.ceilDiv(SCHEDULES, PER_TEST));
  }

  /** What each rank saves at a step, so that what is loaded says of which step it is. */
  private static Contents contents(Tensor weight, Tensor bias) {
    return Contents.of().copies("model", List.of("w", "b"), List.of(weight, bias));
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void theLastAwaitedCheckpointSurvives(int hundred) throws IOException {
    for (int i = 0; i < PER_TEST; i++) {
      long seed = SEED + (long) PER_TEST * hundred + i;
      Random random = new Random(seed);
      ModelDisk disk = new ModelDisk(folder);
      long awaited = -1;
      for (int job = 0; job < JOBS; job++) {
        int ranks = 1 + random.nextInt(3);
        int kept = 1 + random.nextInt(3);
        disk.failAfter(random.nextInt(job == 0 ? 90 : 60));
        awaited = Math.max(awaited, run(disk, ranks, kept, awaited, seed));
        disk.crash(random);
        verifyAll(disk, seed);
      }
      disk.failAfter(Integer.MAX_VALUE / 2);
      assertThat(run(disk, 2, 1, awaited, seed))
          .as("seed %d", seed)
          .isGreaterThanOrEqualTo(awaited + SAVES);
    }
  }

  private void verifyAll(ModelDisk disk, long seed) throws IOException {
    CheckpointFolder all = new CheckpointFolder(disk, folder);
    for (long step : all.steps()) {
      assertThatCode(() -> StoredCheckpoint.open(all, step).verify())
          .as("seed %d, step %d", seed, step)
          .doesNotThrowAnyException();
    }
  }

  /** Loads, saves until the disk fails, and returns the last step that was awaited. */
  private long run(ModelDisk disk, int ranks, int kept, long awaited, long seed) {
    AtomicLong last = new AtomicLong(-1);
    ThreadedWorld.run(
        ranks,
        group -> {
          Tensor weight = Tensor.allocate(DType.FLOAT32, 3);
          Tensor bias = Tensor.allocate(DType.INT64, 2);
          Contents contents = contents(weight, bias);
          try (Checkpoints saved = Checkpoints.in(group, folder, disk).keeping(kept)) {
            OptionalLong step = saved.loadLatest(contents);
            assertThat(step.orElse(-1)).as("seed %d", seed).isGreaterThanOrEqualTo(awaited);
            if (step.isPresent()) {
              assertThat(weight.toFloatArray())
                  .as("seed %d", seed)
                  .containsOnly((float) step.getAsLong());
              assertThat(bias.toLongArray()).as("seed %d", seed).containsOnly(step.getAsLong());
            }
            for (long next = step.orElse(-1) + 1; next <= step.orElse(-1) + SAVES; next++) {
              weight.fill((double) next);
              bias.fillLong(next);
              saved.save(next, contents).await();
              last.set(next);
            }
          } catch (CheckpointException e) {
            assertThat(e).as("seed %d", seed).hasMessageContaining("Input/output error");
          }
        });
    return last.get();
  }
}
