package dev.tutti.gloo.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class HostProbeFileTest {
  @TempDir Path directory;

  /** Kills a rank while another one looks for it; the other one then gives up. */
  @Test
  void whatAKilledRankLeftIsRemovedByWhoLookedForIt() throws Exception {
    HostProbeFile own = HostProbeFile.light(directory);
    Process child =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "-Xmx64m",
                "-XX:+UseSerialGC",
                "-cp",
                ManagementFactory.getRuntimeMXBean().getClassPath(),
                HostProbeFileMain.class.getName(),
                directory.toString())
            .redirectErrorStream(true)
            .start();
    try (BufferedReader output =
        new BufferedReader(new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8))) {
      String name = output.readLine();
      assertThat(directory.toFile().list()).containsExactlyInAnyOrder(own.name(), name);
      assertThat(HostProbeFile.isSeen(name, directory)).isTrue();
    } finally {
      child.destroyForcibly();
    }
    assertThat(child.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(directory.toFile().list()).hasSize(2);
    own.close();
    assertThat(directory.toFile().list()).isEmpty();
  }

  @Test
  void whatAnotherRankHasStays() throws Exception {
    HostProbeFile other = HostProbeFile.light(directory);
    HostProbeFile.light(directory).close();
    assertThat(directory.toFile().list()).containsExactly(other.name());
    other.close();
    assertThat(directory.toFile().list()).isEmpty();
  }

  @Test
  void theFileIsForItsUserAlone() throws Exception {
    try (HostProbeFile own = HostProbeFile.light(directory)) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own.file())))
          .isEqualTo("rw-------");
    }
  }

  @Test
  void aRankOfAnotherUserIsNoticed() throws Exception {
    try (HostProbeFile own = HostProbeFile.light(directory);
        HostProbeFile other = HostProbeFile.light(directory)) {
      assertThat(own.otherUserOf(other.name())).isEmpty();
      assertThat(own.otherUserOf("none")).isEmpty();
      assumeTrue((int) Files.getAttribute(own.file(), "unix:uid") == 0, "needs root");
      Files.setAttribute(other.file(), "unix:uid", 4711);
      assertThat(own.otherUserOf(other.name())).contains("4711");
    }
  }
}
