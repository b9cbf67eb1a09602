package dev.tutti.cli.unload;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Tests that a server which loads Tutti with each of its applications can drop them. */
@Timeout(1200)
@Order(1)
@EnabledOnOs(value = OS.LINUX, disabledReason = "only Linux shows what a process has mapped")
class ClassLoaderTest {
  /** One loader takes 4 MB of metaspace. */
  private static final String METASPACE = "-XX:MaxMetaspaceSize=96m";

  @Test
  void nothingHoldsTheLoaderAfterTheLastGroup(@TempDir Path folder) throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-XX:SoftRefLRUPolicyMSPerMB=0",
                METASPACE,
                "--enable-native-access=ALL-UNNAMED",
                "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
                "-Dtutti.path=" + System.getProperty("java.class.path"),
                "-cp",
                System.getProperty("java.class.path"),
                UnloadMain.class.getName(),
                "50",
                folder.toString())
            .redirectErrorStream(true)
            .start();
    try {
      String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(List.of(output.split("\n")).getLast())
          .as(output)
          .isEqualTo("freed 50 of 50, 0 mapped");
      assertThat(process.waitFor()).isZero();
    } finally {
      process.destroyForcibly();
    }
  }
}
