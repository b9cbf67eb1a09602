package dev.tutti.fake;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DeviceMesh;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Tests grids of ranks. */
class DeviceMeshTest {
  private static double sumOf(ProcessGroup group, int value) {
    Tensor tensor = Tensor.of((double) value);
    group.allReduce(tensor);
    return tensor.getDouble(0);
  }

  @Test
  void groupsGoAlongDimensions() {
    Worlds.run(
        12,
        group -> {
          int rank = group.rank();
          try (DeviceMesh mesh = DeviceMesh.init(group, new int[] {2, 3, 2}, "pp", "dp", "tp")) {
            assertThat(mesh.names()).containsExactly("pp", "dp", "tp");
            assertThat(mesh.shape()).containsExactly(2, 3, 2);
            assertThat(mesh.dimensions()).isEqualTo(3);
            assertThat(mesh.size("dp")).isEqualTo(3);
            assertThat(mesh.coordinate("pp")).isEqualTo(rank / 6);
            assertThat(mesh.coordinate("dp")).isEqualTo(rank / 2 % 3);
            assertThat(mesh.coordinate("tp")).isEqualTo(rank % 2);
            for (String name : mesh.names()) {
              assertThat(mesh.group(name).rank()).isEqualTo(mesh.coordinate(name));
              assertThat(mesh.group(name).size()).isEqualTo(mesh.size(name));
            }
            int tp = rank / 2 * 2;
            assertThat(mesh.group("tp").globalRanks()).containsExactly(tp, tp + 1);
            int dp = rank / 6 * 6 + rank % 2;
            assertThat(mesh.group("dp").globalRanks()).containsExactly(dp, dp + 2, dp + 4);
            assertThat(mesh.group("pp").globalRanks()).containsExactly(rank % 6, rank % 6 + 6);
            assertThat(sumOf(mesh.group("dp"), rank)).isEqualTo(3 * dp + 6);
            assertThat(mesh.ranks()).hasSize(12).startsWith(0, 1, 2).endsWith(11);
            assertThat(mesh).hasToString("DeviceMesh[[pp, dp, tp], [2, 3, 2], rank " + rank + "]");
          }
          assertThat(sumOf(group, 1)).isEqualTo(12);
        });
  }

  @Test
  void slicesShareGroupsAndBecomeOne() {
    Worlds.run(
        8,
        group -> {
          int rank = group.rank();
          DeviceMesh mesh = DeviceMesh.init(group, new int[] {2, 2, 2}, "a", "b", "c");
          DeviceMesh slice = mesh.slice("c", "a");
          assertThat(slice.group("a")).isSameAs(mesh.group("a"));
          int first = rank & 2;
          assertThat(slice.ranks()).containsExactly(first, first + 4, first + 1, first + 5);
          slice.close();
          assertThat(sumOf(mesh.group("a"), 1)).isEqualTo(2);
          try (DeviceMesh flat = slice.flatten("ca")) {
            assertThat(flat.names()).containsExactly("ca");
            assertThat(flat.group("ca").size()).isEqualTo(4);
            assertThat(flat.group("ca").globalRanks()).isEqualTo(slice.ranks());
            assertThat(flat.coordinate("ca")).isEqualTo(slice.ranks().indexOf(rank));
            assertThat(sumOf(flat.group("ca"), rank)).isEqualTo(4 * first + 10);
          }
          assertThat(sumOf(mesh.group("c"), 1)).isEqualTo(2);
          mesh.close();
          assertThat(mesh.group("a").isClosed()).isTrue();
          assertThat(group.isClosed()).isFalse();
        });
  }

  @Test
  void groupsAreDividedEvenlyAndByLists() {
    Worlds.run(
        6,
        group -> {
          int rank = group.rank();
          ProcessGroup pair = DeviceMesh.newSubgroups(group, 2);
          assertThat(pair.globalRanks()).containsExactly(rank / 2 * 2, rank / 2 * 2 + 1);
          Optional<ProcessGroup> listed =
              DeviceMesh.newSubgroups(group, List.of(List.of(4, 0), List.of(1, 5, 2)));
          if (rank == 3) {
            assertThat(listed).isEmpty();
          } else {
            List<Integer> expected = rank % 4 == 0 ? List.of(4, 0) : List.of(1, 5, 2);
            assertThat(listed.orElseThrow().globalRanks()).isEqualTo(expected);
            assertThat(sumOf(listed.orElseThrow(), 1)).isEqualTo(expected.size());
          }
        });
  }

  @Test
  void whatDoesNotFitIsRefusedBeforeAnythingIsSent() {
    Worlds.run(
        4,
        group -> {
          long before = group.sequenceNumber();
          assertThatThrownBy(() -> DeviceMesh.init(group, new int[] {2, 3}, "a", "b"))
              .hasMessage("a mesh of shape [2, 3] does not fit the 4 ranks of group 0");
          assertThatThrownBy(() -> DeviceMesh.init(group, new int[] {4}, "a", "b"))
              .hasMessageContaining("must have the same length");
          assertThatThrownBy(() -> DeviceMesh.init(group, new int[0]))
              .hasMessageContaining("at least one");
          assertThatThrownBy(() -> DeviceMesh.init(group, new int[] {-4, -1}, "a", "b"))
              .hasMessageContaining("at least one rank");
          assertThatThrownBy(() -> DeviceMesh.init(group, new int[] {2, 2}, "a", "a"))
              .hasMessage("names must be unique: [a, a]");
          assertThatThrownBy(() -> DeviceMesh.newSubgroups(group, 3))
              .hasMessage("group 0 of 4 ranks cannot be divided into groups of 3");
          assertThatThrownBy(
                  () -> DeviceMesh.newSubgroups(group, List.of(List.of(0, 1), List.of(1))))
              .hasMessageContaining("rank 1 in [[0, 1], [1]] is listed twice");
          assertThatThrownBy(() -> DeviceMesh.newSubgroups(group, List.of(List.of(4))))
              .hasMessageContaining("is not one of the 4 ranks of group 0");
          assertThatThrownBy(() -> DeviceMesh.newSubgroups(group, List.of(List.of())))
              .hasMessageContaining("list 0 of [[]] is empty");
          assertThat(group.sequenceNumber()).isEqualTo(before);
          try (DeviceMesh mesh = DeviceMesh.init(group, new int[] {4}, "dp")) {
            assertThatThrownBy(() -> mesh.group("tp"))
                .hasMessage("no dimension 'tp'; the dimensions are [dp]");
            assertThatThrownBy(mesh::slice).hasMessageContaining("each only once");
            assertThatThrownBy(() -> mesh.slice("dp", "dp")).hasMessageContaining("each only once");
          }
        });
  }
}
