package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class BindingTest {
  @TempDir private Path system;

  private static BitSet range(int first, int end) {
    BitSet set = new BitSet();
    set.set(first, end);
    return set;
  }

  private void node(int number, String processors) throws IOException {
    Path folder = Files.createDirectories(system.resolve("node/node" + number));
    Files.writeString(folder.resolve("cpulist"), processors + "\n");
  }

  private void core(String siblings, int... processors) throws IOException {
    for (int processor : processors) {
      Path folder = system.resolve("cpu/cpu" + processor + "/topology");
      Files.createDirectories(folder);
      Files.writeString(folder.resolve("thread_siblings_list"), siblings + "\n");
    }
  }

  private List<String> shares(String kind, int ranks, BitSet allowed) {
    Binding binding = Binding.choose(kind, ranks, allowed, system);
    List<String> shares = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      shares.add(binding.of(rank).toString());
    }
    return shares;
  }

  /** Two sockets of two cores with two threads each, numbered as Linux does on a Xeon. */
  private void twoSockets() throws IOException {
    node(0, "0-1,4-5");
    node(1, "2-3,6-7");
    for (int core = 0; core < 4; core++) {
      core(core + "," + (core + 4), core, core + 4);
    }
  }

  @Test
  void ranksGetEqualSharesOfCoresWithAllTheirThreads() throws IOException {
    twoSockets();
    BitSet all = range(0, 8);
    assertThat(shares("core", 4, all)).containsExactly("{0, 4}", "{1, 5}", "{2, 6}", "{3, 7}");
    assertThat(shares("core", 2, all)).containsExactly("{0, 1, 4, 5}", "{2, 3, 6, 7}");
    assertThat(shares("core", 3, all)).containsExactly("{0, 4}", "{1, 5}", "{2, 3, 6, 7}");
    assertThat(shares("core", 1, all)).containsExactly("{0, 1, 2, 3, 4, 5, 6, 7}");
    assertThat(shares("core", 5, all))
        .containsExactly("{0, 4}", "{0, 4}", "{1, 5}", "{2, 6}", "{3, 7}");
  }

  @Test
  void ranksGetTheNodesOfTheirShares() throws IOException {
    twoSockets();
    String first = "{0, 1, 4, 5}";
    String second = "{2, 3, 6, 7}";
    assertThat(shares("numa", 4, range(0, 8))).containsExactly(first, first, second, second);
    assertThat(shares("numa", 2, range(0, 8))).containsExactly(first, second);
    assertThat(shares("numa", 1, range(0, 8))).containsExactly(range(0, 8).toString());
  }

  @Test
  void onlyAllowedProcessorsCount() throws IOException {
    twoSockets();
    assertThat(shares("core", 2, range(1, 4))).containsExactly("{1}", "{2, 3}");
    assertThat(shares("numa", 2, range(2, 6))).containsExactly("{4, 5}", "{2, 3}");
  }

  @Test
  void eachProcessorIsACoreOfOneNodeWhereTheSystemDoesNotSay() {
    assertThat(shares("core", 2, range(3, 5))).containsExactly("{3}", "{4}");
    assertThat(shares("numa", 2, range(3, 5))).containsExactly("{3, 4}", "{3, 4}");
  }

  @Test
  void processorsOfNoNodeCountToo() throws IOException {
    node(0, "0-1");
    node(2, "");
    assertThat(shares("numa", 2, range(0, 4))).containsExactly("{0, 1}", "{2, 3}");
  }

  @Test
  void noneBindsNobody() {
    assertThat(shares("none", 2, range(0, 4))).containsExactly("{}", "{}");
    assertThat(shares("none", 2, new BitSet())).containsExactly("{}", "{}");
  }

  @Test
  void refusesWhatItDoesNotKnow() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> shares("socket", 2, range(0, 4)))
        .withMessage("--bind must be core, numa or none, not 'socket'");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> shares("core", 2, new BitSet()))
        .withMessage("--bind=core works only on Linux");
  }
}
