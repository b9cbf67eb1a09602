package dev.tutti.examples.digits;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.examples.Processes;
import dev.tutti.examples.digits.TrainDigits.Outcome;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.gloo.GlooProvider;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
@Order(1)
class TrainDigitsTest {
  @TempDir Path folder;

  @Test
  void fourRanksLearnWhatOneLearns() {
    Outcome alone = train(1, new ArrayList<>()).get(0);
    List<Outcome> together = train(4, new ArrayList<>());
    assertThat(alone.accuracy()).isGreaterThan(0.93);
    for (Outcome outcome : together) {
      assertThat(outcome.accuracy()).isCloseTo(alone.accuracy(), within(0.005));
      assertThat(outcome.accuracy()).isGreaterThan(0.93);
      assertThat(outcome.loss()).isCloseTo(alone.loss(), within(0.01 * alone.loss()));
      assertThat(outcome.parameters().segment().mismatch(together.get(0).parameters().segment()))
          .as("first byte in which the parameters differ from rank 0's")
          .isEqualTo(-1);
    }
  }

  @Test
  void rankZeroReportsAFallingLoss() {
    List<String> lines = Collections.synchronizedList(new ArrayList<>());
    Outcome outcome = train(2, lines).get(0);
    assertThat(lines).hasSize(31);
    double before = Double.POSITIVE_INFINITY;
    for (int epoch = 5; epoch <= 30; epoch += 5) {
      String line = lines.get(epoch - 1);
      assertThat(line).startsWith("epoch %2d: loss ".formatted(epoch));
      double loss = Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1));
      assertThat(loss).as(line).isLessThan(before);
      before = loss;
    }
    assertThat(lines.get(30)).isEqualTo(lastLine(outcome, 2));
  }

  @Test
  void processesReachTheAccuracyOfOneProcess() throws Exception {
    List<Path> classPath = Processes.classPath(TrainDigits.class, GlooProvider.class);
    List<String> lines = Processes.run(2, TrainDigits.class, classPath, folder);
    String last = lines.get(lines.size() - 1);
    assertThat(last).matches("test accuracy \\d+\\.\\d\\d %, ranks: 2");
    double accuracy = Double.parseDouble(last.split(" ")[2]) / 100;
    assertThat(accuracy).isCloseTo(train(1, new ArrayList<>()).get(0).accuracy(), within(0.005));
  }

  private static List<Outcome> train(int ranks, List<String> lines) {
    return ThreadedWorld.of(ranks)
        .withTimeout(Duration.ofMinutes(7))
        .call(group -> TrainDigits.train(group, lines::add));
  }

  private static String lastLine(Outcome outcome, int ranks) {
    return String.format(
        Locale.ROOT, "test accuracy %.2f %%, ranks: %d", 100 * outcome.accuracy(), ranks);
  }
}
