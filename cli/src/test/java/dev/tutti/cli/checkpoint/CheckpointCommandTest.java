package dev.tutti.cli.checkpoint;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.STRING;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.checkpoint.Checkpoints;
import dev.tutti.checkpoint.Contents;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.Terminal;
import dev.tutti.fake.ThreadedWorld;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the command checkpoint prints. */
class CheckpointCommandTest {
  private final TestTerminal terminal = new TestTerminal();

  @TempDir Path folder;

  private int checkpoint(String... args) {
    return Main.execute(terminal.terminal(), Map.of(), args);
  }

  private void save() {
    ThreadedWorld.run(
        2,
        group -> {
          Contents contents =
              Contents.of()
                  .copies(
                      "model",
                      List.of("w", "b\u001b[2J"),
                      List.of(Tensor.allocate(DType.FLOAT32, 2, 3), Tensor.of(1L)))
                  .value("sampler", () -> "at " + group.rank(), all -> {});
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(5, contents).await();
            saved.save(10, contents).await();
          }
        });
  }

  @Test
  void listPrintsALineForEachCheckpoint() {
    assertThat(checkpoint("checkpoint", "list", folder.toString())).isZero();
    save();
    assertThat(checkpoint("checkpoint", "list", folder.toString())).isZero();
    assertThat(terminal.out().lines())
        .containsExactly(
            "no checkpoint in " + folder,
            "step 5  2 ranks  2 tensors  8357 bytes",
            "step 10  2 ranks  2 tensors  8357 bytes");
  }

  @Test
  void showPrintsWhatIsInTheLatest() {
    save();
    assertThat(checkpoint("checkpoint", "show", folder.toString())).isZero();
    assertThat(terminal.out().lines())
        .containsExactly(
            "step 10, saved by 2 ranks",
            "model  b\\x1b[2J  int64[1]",
            "model  w  float32[2, 3]",
            "sampler  [at 0, at 1]");
  }

  @Test
  void verifyFindsAChangedByte() throws IOException {
    save();
    assertThat(checkpoint("checkpoint", "verify", folder.resolve("step-5").toString()))
        .isEqualTo(1);
    assertThat(terminal.out().lines())
        .containsExactly("no checkpoint in " + folder.resolve("step-5"));
    assertThat(checkpoint("checkpoint", "verify", folder.toString())).isZero();
    Path file = folder.resolve("step-10/model-00002-of-00002.safetensors");
    byte[] bytes = Files.readAllBytes(file);
    bytes[bytes.length - 1] ^= 1;
    Files.write(file, bytes);
    assertThat(checkpoint("checkpoint", "verify", folder.toString())).isEqualTo(1);
    assertThat(checkpoint("checkpoint", "verify", "--step", "5", folder.toString())).isZero();
    List<String> lines = terminal.out().lines().toList();
    assertThat(lines).hasSize(6);
    assertThat(lines.subList(1, 4))
        .containsExactly(
            "step 5: 8357 bytes are right",
            "step 10: 8357 bytes are right",
            "step 5: 8357 bytes are right");
    assertThat(lines.get(4)).startsWith("step 10: " + file + " is damaged: the CRC32C of its");
    assertThat(lines.get(5)).isEqualTo("step 5: 8357 bytes are right");
  }

  @ParameterizedTest
  @ValueSource(strings = {"list", "verify"})
  void whatAJobDeletesMeanwhileIsNotDamaged(String command) {
    save();
    ByteArrayOutputStream out =
        new ByteArrayOutputStream() {
          @Override
          public synchronized void write(byte[] bytes, int offset, int length) {
            super.write(bytes, offset, length);
            if (toString(UTF_8).startsWith("step 5")) {
              boolean _ =
                  folder.resolve("step-10").toFile().renameTo(folder.resolve("gone").toFile());
            }
          }
        };
    Terminal deleting = terminal.terminal(new PrintStream(out, true, UTF_8));
    assertThat(Main.execute(deleting, Map.of(), "checkpoint", command, folder.toString())).isZero();
    assertThat(out.toString(UTF_8).lines())
        .hasSize(2)
        .last(STRING)
        .matches("step 10:? +deleted since it was listed");
  }

  private void assertSays(int code, String line, String... args) {
    TestTerminal own = new TestTerminal();
    assertThat(Main.execute(own.terminal(), Map.of(), args)).isEqualTo(code);
    assertThat((own.out() + own.err()).lines()).contains(line);
  }

  @Test
  void aFolderThatIsNoneIsNamed() throws IOException {
    String none = folder.resolve("none").toString();
    String file = Files.writeString(folder.resolve("file"), "text").toString();
    for (String command : List.of("list", "verify", "show")) {
      String prefix = "tutti checkpoint " + command + ": ";
      assertSays(1, prefix + "no such file or directory: " + none, "checkpoint", command, none);
      assertSays(1, prefix + "not a directory: " + file, "checkpoint", command, file);
    }
    assertSays(
        1, "step 3: no such file or directory: " + none, "checkpoint", "verify", "--step=3", none);
  }

  @Test
  void whatIsNoCheckpointIsNamedAndTheOthersAreRead() throws IOException {
    save();
    Path pipe = Files.createDirectory(folder.resolve("step-20")).resolve("checkpoint.json");
    // As a pipe would, it has no end.
    Files.createSymbolicLink(pipe, Path.of("/dev/zero"));
    Path loop = folder.resolve("step-21");
    Files.createSymbolicLink(loop, loop.getFileName());
    Files.createSymbolicLink(folder.resolve("step-22"), Path.of("step-5"));
    for (String command : List.of("list", "verify")) {
      checkpoint("checkpoint", command, folder.toString());
    }
    String away = folder.resolve("step-22") + " away to load an older checkpoint";
    String other = folder.resolve("step-22/checkpoint.json") + " is damaged: it is that of step 5";
    assertThat(terminal.out().lines())
        .contains(
            "step 5  2 ranks  2 tensors  8357 bytes",
            "step 5: 8357 bytes are right",
            "step 20  " + pipe + ": not a regular file",
            "step 20: " + pipe + ": not a regular file",
            "step 22: " + other + "; move " + away)
        .anyMatch(line -> line.startsWith("step 21: " + loop + "/checkpoint.json: Too many"));
    assertSays(
        1,
        "tutti checkpoint show: " + other + "; move " + away,
        "checkpoint",
        "show",
        folder.toString());
  }
}
