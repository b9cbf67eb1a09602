package dev.tutti.cli.trace;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cli.CliModule;
import dev.tutti.cli.Main;
import dev.tutti.cli.process.Terminal;
import dev.tutti.fake.ThreadedWorld;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Map;
import jdk.jfr.Recording;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that {@code tutti trace} reads recordings of the JDK. */
@Timeout(300)
@Isolated("records the operations of the whole process")
class JdkRecordingTest {
  @Test
  void operationsOfARecordingAreCounted(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("job.jfr");
    try (Recording recording = new Recording()) {
      recording.start();
      ThreadedWorld.run(
          2, group -> group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC).await());
      recording.stop();
      recording.dump(file);
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Terminal terminal = new Terminal(new PrintStream(out, true, UTF_8), System.err, false, false);
    int status =
        Main.execute(
            new CliModule(terminal, Map.of()), terminal, Map.of(), "trace", file.toString());
    assertThat(status).isZero();
    assertThat(out.toString(UTF_8))
        .containsPattern("(?m)^ *0 +1 ")
        .containsPattern("(?m)^ *1 +1 ")
        .contains("allReduce 1");
  }
}
