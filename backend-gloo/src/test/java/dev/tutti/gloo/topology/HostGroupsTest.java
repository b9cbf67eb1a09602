package dev.tutti.gloo.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;

class HostGroupsTest {
  @Test
  void hostsAreNumberedByTheirLowestRanks() {
    HostGroups groups = HostGroups.of(0, 1, 0, 1, 4, 1);
    assertThat(groups).hasToString("[0, 2] [1, 3, 5] [4]");
    assertThat(groups.size()).isEqualTo(6);
    assertThat(groups.hosts()).isEqualTo(3);
    assertThat(groups.hostOf(5)).isEqualTo(1);
    assertThat(groups.placeOf(5)).isEqualTo(2);
    assertThat(groups.placeOf(2)).isEqualTo(1);
    assertThat(groups.countOf(1)).isEqualTo(3);
    assertThat(groups.areEven()).isFalse();
    assertThat(groups.areAllAlone()).isFalse();
    assertThat(groups.column(0)).containsExactly(0, 1, 4);
    assertThat(groups.leadersWith(3)).containsExactly(0, 3, 4);
  }

  @Test
  void hostsMayHaveAsManyRanks() {
    HostGroups groups = HostGroups.of(0, 1, 1, 0);
    assertThat(groups.areEven()).isTrue();
    assertThat(groups.column(1)).containsExactly(3, 2);
    assertThat(HostGroups.of(0, 0, 0).hosts()).isEqualTo(1);
    assertThat(HostGroups.of(0, 1, 2).areAllAlone()).isTrue();
  }

  @Test
  void aFollowerLeadsNobody() {
    assertThatIllegalArgumentException().isThrownBy(() -> HostGroups.of(0, 0, 1));
    assertThatIllegalArgumentException().isThrownBy(() -> HostGroups.of(1, 1));
  }
}
