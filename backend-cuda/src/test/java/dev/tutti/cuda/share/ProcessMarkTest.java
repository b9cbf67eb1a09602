package dev.tutti.cuda.share;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.FileInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class ProcessMarkTest {
  /** Opens files until no descriptors are left, then queries its own mark. */
  static final class WithoutDescriptors {
    private WithoutDescriptors() {}

    public static void main(String[] args) {
      long own = ProcessMark.own();
      boolean before = ProcessMark.isAlive(own);
      List<FileInputStream> all = new ArrayList<>();
      try {
        while (true) {
          all.add(new FileInputStream("/dev/null"));
        }
      } catch (IOException e) {
        boolean without = ProcessMark.isAlive(own);
        System.out.println(before && without && !all.isEmpty() ? "alive" : "dead");
      }
    }
  }

  /** Cuts a name after 15 bytes, in the middle of a character, as the system does. */
  @Test
  @Timeout(300)
  void aProcessMayHaveANameThatIsNoText() throws Exception {
    String rename = "printf 'auswertungsgr\\303' > /proc/$$/comm; echo named; read _";
    Process child = new ProcessBuilder("sh", "-c", rename).start();
    try {
      assertThat(child.inputReader().readLine()).isEqualTo("named");
      long mark = ProcessMark.of(child.pid());
      assertThat(ProcessMark.pid(mark)).isEqualTo(child.pid());
      assertThat(ProcessMark.isAlive(mark)).isTrue();
      assertThat(ProcessMark.isAlive(mark + (1L << 22))).isFalse();
    } finally {
      child.destroyForcibly();
    }
  }

  @Test
  @Timeout(300)
  void aProcessIsNotTakenForDeadForWantOfDescriptors() throws Exception {
    String java = ProcessHandle.current().info().command().orElseThrow();
    Process child =
        new ProcessBuilder(
                "sh",
                "-c",
                "ulimit -n 128; exec \"$@\"",
                "sh",
                java,
                "-cp",
                System.getProperty("java.class.path"),
                WithoutDescriptors.class.getName())
            .redirectErrorStream(true)
            .start();
    try {
      String text = new String(child.getInputStream().readAllBytes(), UTF_8);
      assertThat(child.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(text.strip()).isEqualTo("alive");
    } finally {
      child.destroyForcibly();
    }
  }
}
