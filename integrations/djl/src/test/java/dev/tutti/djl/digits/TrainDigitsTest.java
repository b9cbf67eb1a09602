package dev.tutti.djl.digits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.djl.engine.Engine;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(1200)
class TrainDigitsTest {
  private static final Pattern EPOCH =
      Pattern.compile("epoch +(\\d+): loss ([\\d.]+), test accuracy ([\\d.]+) %");

  /** How long a training may take where processes wait for a core. */
  private static final long SECONDS = 280;

  @TempDir Path folder;

  /** Unpacks libtorch before any process waits for another. */
  @BeforeAll
  static void load() {
    Engine.getInstance();
  }

  @Test
  void anyNumberOfProcessesLearnsWhatOneLearns() throws Exception {
    List<MatchResult> alone = train(1);
    assertThat(alone).hasSize(15);
    assertThat(Double.parseDouble(alone.getLast().group(3))).isGreaterThan(94);
    assertThat(loss(alone.getLast())).isLessThan(0.1 * loss(alone.getFirst()));
    for (int size : new int[] {2, 4}) {
      List<MatchResult> together = train(size);
      assertThat(together).hasSameSizeAs(alone);
      for (int epoch = 0; epoch < alone.size(); epoch++) {
        assertThat(loss(together.get(epoch)))
            .as("loss of epoch %d on %d processes", epoch + 1, size)
            .isCloseTo(loss(alone.get(epoch)), within(1e-4));
      }
      assertThat(Double.parseDouble(together.getLast().group(3)))
          .isCloseTo(Double.parseDouble(alone.getLast().group(3)), within(0.3));
    }
  }

  @Test
  void othersNameARankThatIsKilled() throws Exception {
    try (RankPrograms programs = new RankPrograms(folder, 4)) {
      for (int rank = 0; rank < 4; rank++) {
        programs.start(TrainDigits.class, rank == 1 ? "3" : "-1");
      }
      assertThat(programs.await(1, SECONDS)).isEqualTo(137);
      for (int rank : new int[] {0, 2, 3}) {
        // The deadline of their operations is half an hour.
        assertThat(programs.await(rank, SECONDS)).isEqualTo(1);
        assertThat(programs.output(rank)).contains("Exception").contains("rank 1 is gone");
      }
    }
  }

  private List<MatchResult> train(int size) throws Exception {
    try (RankPrograms programs = new RankPrograms(folder, size)) {
      for (int rank = 0; rank < size; rank++) {
        programs.start(TrainDigits.class);
      }
      for (int rank = 0; rank < size; rank++) {
        assertThat(programs.await(rank, SECONDS)).as(programs.output(rank)).isZero();
      }
      return EPOCH.matcher(programs.output(0)).results().toList();
    }
  }

  private static double loss(MatchResult epoch) {
    return Double.parseDouble(epoch.group(2));
  }
}
