package dev.tutti.interop.pytorch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.fake.ThreadedWorld;
import dev.tutti.peer.libtorch.PeerData;
import dev.tutti.peer.libtorch.PeerType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlanTest {
  @TempDir Path directory;

  @Test
  void aPlanSaysWhatEachRankMustHave() throws IOException {
    Plan plan =
        Plan.of(
            List.of(
                "allreduce float32 sum 10 data=fraction",
                "newgroup 0,2",
                "ring int32 3 group=1",
                "anysource int8 2 root=1"),
            3);
    Path file = directory.resolve("plan");
    plan.write(file);
    Plan read = Plan.read(file);
    assertThat(read.size()).isEqualTo(3);
    assertThat(read.entries().stream().map(entry -> entry.line().toString()).toList())
        .isEqualTo(plan.entries().stream().map(entry -> entry.line().toString()).toList());
    List<List<String>> checksums = read.entries().stream().map(Plan.Entry::checksums).toList();
    assertThat(checksums.get(0)).containsExactly("=", "=", "=");
    assertThat(checksums.get(1)).containsExactly("00000000", "00000000", "00000000");
    // The members are ranks 0 and 1 of their group, so each has the other's data.
    assertThat(checksums.get(2)).containsExactly(int32(1), "-", int32(0));
    byte[] received = {-5, 2, 0, 0};
    byte[] of2 = PeerData.input(PeerType.INT8, PeerData.Pattern.SMALL, 2, 0, 2, 0);
    System.arraycopy(of2, 0, received, 2, 2);
    assertThat(checksums.get(3)).containsExactly("00000000", PeerData.crc(received), "00000000");
  }

  private static String int32(int rank) {
    return PeerData.crc(PeerData.input(PeerType.INT32, PeerData.Pattern.SMALL, rank, 0, 3, 0));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void ranksOfTuttiLeaveWhatAPlanSays(int size) throws IOException {
    Plan plan = Plan.of(Lines.of(size), size);
    ThreadedWorld.run(size, group -> RankProgram.run(plan, directory, false, group));
    Check check = new Check(plan, directory);
    assertThat(check.run()).isEmpty();
    assertThat(check.compared()).isEqualTo(plan.entries().size() * size);
  }

  @Test
  void whatIsWrongIsSaid() throws IOException {
    Plan plan = Plan.of(List.of("broadcast int32 3 root=0", "barrier"), 3);
    write(0, Results.ok(0, int32(0)), Results.ok(1, "00000000"), Results.DONE);
    write(1, Results.ok(0, "12345678"), Results.ok(1, "00000000"), Results.DONE);
    write(2, Results.error(0, "broadcast: no\nway"));
    Check check = new Check(plan, directory);
    assertThat(check.run())
        .containsExactly(
            "rank 1: broadcast int32 3 root=0: 12345678 instead of " + int32(0),
            "rank 2: broadcast: no way",
            "rank 2 did not finish; it ran 1 of 2 lines, next was: barrier");
  }

  @Test
  void aWorldOfOneKindSetsTheMeasure() throws IOException {
    Plan plan =
        Plan.of(List.of("allreduce float32 sum 9 data=fraction", "alltoall int8 1", "barrier"), 2);
    for (int rank = 0; rank < 2; rank++) {
      write(
          rank,
          Results.ok(0, "cafe0000"),
          Results.error(1, "not here"),
          Results.ok(2, "00000000"),
          Results.DONE);
    }
    List<String> refused = new ArrayList<>();
    Check check = new Check(plan, directory);
    Plan measured = check.measure(refused);
    assertThat(check.wrong()).isEmpty();
    assertThat(refused).containsExactly("not here");
    assertThat(measured.entries()).hasSize(2);
    assertThat(measured.entries().getFirst().checksums()).containsExactly("cafe0000", "cafe0000");
  }

  @Test
  void ranksThatRoundDifferentlyAreWrong() throws IOException {
    Plan plan = Plan.of(List.of("allreduce float32 sum 9 data=fraction"), 2);
    write(0, Results.ok(0, "cafe0000"), Results.DONE);
    write(1, Results.ok(0, "cafe0001"), Results.DONE);
    Check check = new Check(plan, directory);
    assertThat(check.measure(new ArrayList<>()).entries()).isEmpty();
    assertThat(check.wrong()).hasSize(1).first().asString().contains("ranks differ", "cafe0001");
  }

  private void write(int rank, String... rows) throws IOException {
    Files.write(directory.resolve("rank-" + rank + ".out"), List.of(rows));
  }
}
