package dev.tutti.examples.hello;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.examples.Processes;
import java.nio.file.Path;
import java.util.List;
import org.example.central.CentralProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs example 02 on another backend, without changing the program or a setting. */
class ThirdPartyBackendTest {
  @TempDir Path folder;

  @Test
  void theClassPathAloneChoosesTheBackend() throws Exception {
    List<Path> classPath = Processes.classPath(HelloProcesses.class, CentralProvider.class);
    assertThat(Processes.run(2, HelloProcesses.class, classPath, folder))
        .containsExactly(
            "rank 0 of 2 on central: the rank numbers add up to 1",
            "rank 1 of 2 on central: the rank numbers add up to 1");
  }
}
