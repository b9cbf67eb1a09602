package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.rank.RankOutput.Channel;
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
        new PrintStream(out, false, UTF_8), new PrintStream(err, false, UTF_8), color, false);
  }

  @Test
  void putsTheRankInFrontAndKeepsTheChannels() {
    PrefixedOutput output = output(false);
    output.lines(2, Channel.OUT, List.of("hällo".getBytes(UTF_8)));
    output.lines(10, Channel.ERR, List.of("bad".getBytes(UTF_8)));
    assertThat(out.toString(UTF_8)).isEqualTo("[rank2] hällo\n");
    assertThat(err.toString(UTF_8)).isEqualTo("[rank10] bad\n");
  }

  @Test
  void colorsOnlyThePrefix() {
    output(true).lines(0, Channel.OUT, List.of("x".getBytes(UTF_8)));
    assertThat(out.toString(UTF_8)).isEqualTo("\u001b[36m[rank0]\u001b[0m x\n");
  }

  private static void piece(PrefixedOutput output, int rank, Channel channel, String text) {
    boolean isLast = text.endsWith("\n");
    output.piece(rank, channel, text.replace("\n", "").getBytes(UTF_8), isLast);
  }

  @Test
  void aLineGoesOnWhereItWasShown() {
    PrefixedOutput output = output(false);
    piece(output, 0, Channel.OUT, "working");
    piece(output, 0, Channel.OUT, "...");
    output.endLine();
    piece(output, 0, Channel.OUT, " done\n");
    output.lines(0, Channel.OUT, List.of("next".getBytes(UTF_8)));
    assertThat(out.toString(UTF_8)).isEqualTo("[rank0] working... done\n[rank0] next\n");
  }

  @Test
  void whoeverPrintsNextEndsTheLineOfAnother() {
    PrefixedOutput output = output(false);
    piece(output, 0, Channel.OUT, "a");
    piece(output, 1, Channel.OUT, "b");
    piece(output, 0, Channel.OUT, "c\n");
    piece(output, 1, Channel.OUT, "d");
    output.lines(1, Channel.OUT, List.of("e".getBytes(UTF_8)));
    output.lines(1, Channel.ERR, List.of("f".getBytes(UTF_8)));
    assertThat(out.toString(UTF_8))
        .isEqualTo("[rank0] a\n[rank1] b\n[rank0] c\n[rank1] d\n[rank1] e\n");
    assertThat(err.toString(UTF_8)).isEqualTo("[rank1] f\n");
  }

  @Test
  void onATerminalBothOutputsHaveOneLine() {
    PrefixedOutput output = output(true);
    piece(output, 0, Channel.OUT, "a");
    output.lines(0, Channel.ERR, List.of("f".getBytes(UTF_8)));
    piece(output, 0, Channel.OUT, "b");
    output.endLine();
    assertThat(out.toString(UTF_8))
        .isEqualTo("\u001b[36m[rank0]\u001b[0m a\n\u001b[36m[rank0]\u001b[0m b\n");
  }

  @Test
  void theRankIsPrintedAgainAfterACarriageReturn() {
    PrefixedOutput output = output(false);
    piece(output, 0, Channel.OUT, "10%\r");
    piece(output, 0, Channel.OUT, "20%\r30%");
    piece(output, 0, Channel.OUT, "\n");
    assertThat(out.toString(UTF_8)).isEqualTo("[rank0] 10%\r[rank0] 20%\r[rank0] 30%\n");
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
                      output.lines(rank, Channel.OUT, List.of(line));
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

  @Test
  void cutsTheFramesInsideTutti() {
    List<byte[]> trace =
        List.of(
            "dev.tutti.PeerFailedException: rank 1 is gone".getBytes(UTF_8),
            "\tat dev.tutti.runtime/dev.tutti.runtime.group.Group.call(Group.java:7)"
                .getBytes(UTF_8),
            "\tat dev.tutti.gloo.transport.Pair.read(Pair.java:1)".getBytes(UTF_8),
            "\tat dev.tutti.gradients.GradientReducer.await(GradientReducer.java:1)"
                .getBytes(UTF_8),
            "\tat dev.tutti.djl.DataParallelListener.onTrainingBatch(A.java:1)".getBytes(UTF_8),
            "\tat dev.tutti.ProcessGroup.allReduce(ProcessGroup.java:9)".getBytes(UTF_8),
            "\tat Train.main(Train.java:3)".getBytes(UTF_8));
    output(false).lines(1, Channel.ERR, trace);
    assertThat(err.toString(UTF_8))
        .isEqualTo(
            """
            [rank1] dev.tutti.PeerFailedException: rank 1 is gone
            [rank1] \t... 4 frames of Tutti (--debug)
            [rank1] \tat dev.tutti.ProcessGroup.allReduce(ProcessGroup.java:9)
            [rank1] \tat Train.main(Train.java:3)
            """);
    err.reset();
    new PrefixedOutput(new PrintStream(out), new PrintStream(err), false, true)
        .lines(1, Channel.ERR, trace);
    assertThat(err.toString(UTF_8).lines()).hasSize(7).allMatch(line -> !line.contains("..."));
  }
}
