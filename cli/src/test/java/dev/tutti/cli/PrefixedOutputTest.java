package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.RankOutput.Channel;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PrefixedOutputTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private PrefixedOutput output(boolean color) {
    return new PrefixedOutput(
        new PrintStream(out, false, UTF_8), new PrintStream(err, false, UTF_8), color);
  }

  @Test
  void putsTheRankInFrontAndKeepsTheChannels() {
    PrefixedOutput output = output(false);
    output.line(2, Channel.OUT, "hällo".getBytes(UTF_8));
    output.line(10, Channel.ERR, "bad".getBytes(UTF_8));
    assertThat(out.toString(UTF_8)).isEqualTo("[rank2] hällo\n");
    assertThat(err.toString(UTF_8)).isEqualTo("[rank10] bad\n");
  }

  @Test
  void colorsOnlyThePrefix() {
    output(true).line(0, Channel.OUT, "x".getBytes(UTF_8));
    assertThat(out.toString(UTF_8)).isEqualTo("\u001b[36m[rank0]\u001b[0m x\n");
  }

  @Test
  void neverMixesLinesOfSeveralThreads() throws InterruptedException {
    PrefixedOutput output = output(false);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      int rank = i;
      byte[] line = Integer.toString(rank).repeat(100).getBytes(UTF_8);
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int n = 0; n < 200; n++) {
                      output.line(rank, Channel.OUT, line);
                    }
                  }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(out.toString(UTF_8).lines())
        .hasSize(1600)
        .allMatch(line -> line.matches("\\[rank(\\d)] \\1{100}"));
  }
}
