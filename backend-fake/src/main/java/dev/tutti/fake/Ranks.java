package dev.tutti.fake;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.StringJoiner;
import java.util.concurrent.TimeUnit;
import java.util.function.IntPredicate;

/** Formats lists of ranks for messages. */
final class Ranks {
  /** The empty list. */
  static final String NONE = "no rank";

  private Ranks() {}

  /** Formats a time, as in "3 s" or "0.25 s". */
  static String seconds(Duration time) {
    BigDecimal seconds = BigDecimal.valueOf(TimeUnit.MILLISECONDS.convert(time), 3);
    return seconds.stripTrailingZeros().toPlainString() + " s";
  }

  /** Lists the ranks that have a property, as in "ranks 1, 3". */
  static String list(int size, IntPredicate property) {
    StringJoiner list = new StringJoiner(", ");
    int count = 0;
    for (int rank = 0; rank < size; rank++) {
      if (property.test(rank)) {
        list.add(Integer.toString(rank));
        count++;
      }
    }
    return count == 0 ? NONE : (count == 1 ? "rank " : "ranks ") + list;
  }
}
