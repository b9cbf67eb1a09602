package dev.tutti.cli.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import org.junit.jupiter.api.Test;

class AffinityTest {
  private static BitSet one(int processor) {
    BitSet set = new BitSet();
    set.set(processor);
    return set;
  }

  @Test
  void ownProcessorsAreThoseThatLinuxLists() throws IOException {
    String status = Files.readString(Path.of("/proc/thread-self/status"));
    String list = status.replaceFirst("(?s).*Cpus_allowed_list:\\s*", "").split("\n", 2)[0];
    assertThat(Affinity.own().cardinality()).isPositive();
    assertThat(list).startsWith(Integer.toString(Affinity.own().nextSetBit(0)));
  }

  @Test
  void aChildIsBoundAndTheThreadIsNot() throws IOException, InterruptedException {
    BitSet before = Affinity.own();
    int last = before.length() - 1;
    Process child =
        Affinity.on(
            one(last),
            new ProcessBuilder("sed", "-n", "s/^Cpus_allowed_list:.//p", "/proc/self/status")
                ::start);
    assertThat(new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip())
        .isEqualTo(Integer.toString(last));
    assertThat(child.waitFor()).isZero();
    assertThat(Affinity.own()).isEqualTo(before);
  }

  @Test
  void noProcessorsBindToNothing() throws IOException {
    assertThat(Affinity.on(new BitSet(), Affinity::own)).isEqualTo(Affinity.own());
  }

  @Test
  void theThreadIsFreeAgainAfterAFailure() {
    BitSet before = Affinity.own();
    IOException failure = new IOException("no such program");
    assertThatThrownBy(
            () ->
                Affinity.on(
                    one(before.nextSetBit(0)),
                    () -> {
                      throw failure;
                    }))
        .isSameAs(failure);
    assertThat(Affinity.own()).isEqualTo(before);
  }

  @Test
  void namesProcessorsThatTheSystemRefuses() {
    assertThatThrownBy(() -> Affinity.on(one(8191), Affinity::own))
        .hasMessage("cannot bind to the processors {8191}");
  }
}
