package dev.tutti.runtime.operation;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.ForwardingTime;
import dev.tutti.spi.Time;
import java.util.List;
import org.junit.jupiter.api.Test;

class PerTimeTest {
  private static final class OtherTime extends ForwardingTime {
    OtherTime() {
      super(Time.SYSTEM);
    }
  }

  @Test
  void eachTimeHasItsOwnWatchdog() {
    Time one = new OtherTime();
    Watchdog first = Watchdog.of(one);
    assertThat(Watchdog.of(one)).isSameAs(first);
    assertThat(Watchdog.of(new OtherTime())).isNotSameAs(first);
    assertThat(Watchdog.of(Time.SYSTEM)).isNotSameAs(first).isSameAs(Watchdog.of(Time.SYSTEM));
  }

  @Test
  void setsKeepTheOrderOfInsertion() {
    OrderedSet<String> set = new OrderedSet<>();
    assertThat(List.of(set.add("c"), set.add("a"), set.add("b"), set.add("a")))
        .containsExactly(true, true, true, false);
    List<String> before = set.copy();
    set.remove("a");
    assertThat(set.add("a")).isTrue();
    assertThat(before).containsExactly("c", "a", "b");
    assertThat(set.copy()).containsExactly("c", "b", "a");
    before.forEach(set::remove);
    assertThat(set.isEmpty()).isTrue();
  }
}
