package dev.tutti.store.net;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.ResourceBundle;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests what is logged when there are many warnings, with a clock that jumps. */
class LimitedLogTest {
  private final List<String> lines = new ArrayList<>();
  private final List<String> details = new ArrayList<>();
  private @Nullable Error broken;
  private long now = Long.MAX_VALUE - 5;
  private final LimitedLog log = new LimitedLog(new Lines(), () -> now);

  private void flood(int count, String address) {
    for (int i = 0; i < count; i++) {
      log.warn("drop", address, "drops " + address + " #" + i);
    }
  }

  private void pass(long seconds) {
    now += TimeUnit.SECONDS.toNanos(seconds);
  }

  private List<String> told() {
    List<String> all = List.copyOf(lines);
    lines.clear();
    return all;
  }

  @Test
  void aStrangerForgesNoLinesAndControlsNoTerminal() {
    log.warn("drop", "a", "drops a: its key is 'x\r\nSEVERE: forged\u001b[2J'");
    assertThat(told()).containsExactly("drops a: its key is 'x\\r\\nSEVERE: forged\\x1b[2J'");
  }

  @Test
  void tellsTheFirstOnesThenCounts() {
    flood(5436, "10.0.0.7");
    assertThat(told())
        .containsExactly("drops 10.0.0.7 #0", "drops 10.0.0.7 #1", "drops 10.0.0.7 #2");
    assertThat(details).hasSize(5433).startsWith("drops 10.0.0.7 #3");
    pass(9);
    log.tick();
    assertThat(told()).isEmpty();
    assertThat(log.hasUntold()).isTrue();
    pass(1);
    log.tick();
    assertThat(told())
        .containsExactly(
            "… 5,433 more from 10.0.0.7 in the last 10 s; the last one: drops 10.0.0.7 #5435");
    assertThat(log.hasUntold()).isFalse();
  }

  @Test
  void tellsCountsAtGrowingIntervals() {
    flood(3, "a");
    told();
    List<Long> toldAt = new ArrayList<>();
    for (long second = 1; second <= 3600; second++) {
      pass(1);
      flood(10, "a");
      if (!told().isEmpty()) {
        toldAt.add(second);
      }
    }
    assertThat(toldAt).containsExactly(10L, 30L, 70L, 150L, 310L, 630L, 1230L, 1830L, 2430L, 3030L);
    log.close();
    assertThat(told())
        .singleElement()
        .asString()
        .startsWith("… 5,709 more from a in the last 570 s");
  }

  @Test
  void countsEachCauseAndAddressByItself() {
    flood(100, "a");
    log.warn("drop", "b", "drops b");
    log.warn("cannot accept", "", "cannot accept");
    assertThat(told()).hasSize(5).endsWith("drops b", "cannot accept");
    for (int i = 0; i < 4; i++) {
      log.warn("cannot accept", "", "cannot accept");
    }
    told();
    log.close();
    assertThat(told())
        .containsExactlyInAnyOrder(
            "… 97 more from a in the last 0 s; the last one: drops a #99",
            "… 2 more in the last 0 s; the last one: cannot accept");
  }

  @Test
  void boundsLinesAndMemoryForManyAddresses() {
    for (int i = 0; i < 100_000; i++) {
      log.warn("drop", "address " + i, "drops " + i);
    }
    assertThat(told()).hasSize(LimitedLog.MOST_ADDRESSES + LimitedLog.TOLD);
    log.close();
    assertThat(told()).singleElement().asString().startsWith("… 99,933 more from other addresses");
  }

  @Test
  void tellsTheFirstOnesAgainAfterALongSilence() {
    for (int i = 0; i < LimitedLog.MOST_ADDRESSES; i++) {
      flood(3, "old " + i);
    }
    flood(4, "old 0");
    log.close();
    told();
    pass(601);
    flood(1, "old 0");
    flood(1, "new");
    assertThat(told()).containsExactly("drops old 0 #0", "drops new #0");
  }

  @Test
  void countsWhatCannotBeLogged() {
    broken = new NoClassDefFoundError("deliberate");
    flood(2, "a");
    assertThat(told()).isEmpty();
    broken = null;
    flood(1, "a");
    assertThat(told())
        .containsExactly(
            "2 warnings could not be logged: java.lang.NoClassDefFoundError: deliberate",
            "drops a #0");
  }

  private final class Lines implements System.Logger {
    @Override
    public String getName() {
      return "lines";
    }

    @Override
    public boolean isLoggable(Level level) {
      return true;
    }

    @Override
    public void log(
        Level level, @Nullable ResourceBundle bundle, String text, @Nullable Throwable thrown) {
      take(level, text);
    }

    @Override
    public void log(
        Level level, @Nullable ResourceBundle bundle, String format, Object... parameters) {
      take(level, format);
    }

    private void take(Level level, String line) {
      if (broken != null) {
        throw broken;
      }
      (level == Level.WARNING ? lines : details).add(line);
    }
  }
}
