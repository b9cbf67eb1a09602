package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Runs ranks in a JVM that has the vector module, which that of the other tests has not. */
class VectorModuleTest {
  @Test
  @Timeout(90)
  void sumsAreRightWithTheVectorModule() throws Exception {
    Process child =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "--add-modules=jdk.incubator.vector",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                ManagementFactory.getRuntimeMXBean().getClassPath(),
                VectorModuleMain.class.getName())
            .redirectErrorStream(true)
            .start();
    try {
      String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(child.waitFor(20, TimeUnit.SECONDS)).isTrue();
      assertThat(said.lines().toList()).as(said).contains("vectors true, all right");
      assertThat(child.exitValue()).isZero();
    } finally {
      child.destroyForcibly();
    }
  }
}
