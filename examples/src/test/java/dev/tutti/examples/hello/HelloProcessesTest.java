package dev.tutti.examples.hello;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.examples.Processes;
import dev.tutti.gloo.GlooProvider;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HelloProcessesTest {
  @TempDir Path folder;

  @Test
  void eachProcessPrintsTheSum() throws Exception {
    List<Path> classPath = Processes.classPath(HelloProcesses.class, GlooProvider.class);
    assertThat(Processes.run(4, HelloProcesses.class, classPath, folder))
        .containsExactly(
            "rank 0 of 4 on gloo: the rank numbers add up to 6",
            "rank 1 of 4 on gloo: the rank numbers add up to 6",
            "rank 2 of 4 on gloo: the rank numbers add up to 6",
            "rank 3 of 4 on gloo: the rank numbers add up to 6");
  }
}
