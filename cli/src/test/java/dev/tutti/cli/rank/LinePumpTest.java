package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class LinePumpTest {
  private static List<String> lines(String input) {
    List<String> lines = new ArrayList<>();
    byte[] bytes = input.getBytes(UTF_8);
    new LinePump(new ByteArrayInputStream(bytes), line -> lines.add(new String(line, UTF_8))).run();
    return lines;
  }

  @Test
  void splitsAtLineEnds() {
    assertThat(lines("a\n\nbé\r\nc")).containsExactly("a", "", "bé", "c");
    assertThat(lines("a\n")).containsExactly("a");
    assertThat(lines("")).isEmpty();
  }

  @Test
  void joinsALineThatComesInSeveralReads() {
    String line = "x".repeat(20_000);
    assertThat(lines(line + "\n" + line)).containsExactly(line, line);
  }

  /** An input that gives its parts one by one, the next one when the clock has reached its time. */
  private static final class TimedInput extends InputStream {
    private final Deque<String> parts;
    private final Deque<Long> times;

    /** Advances by a millisecond each time that somebody looks at it. */
    private long millis;

    TimedInput(List<Long> times, List<String> parts) {
      this.times = new ArrayDeque<>(times);
      this.parts = new ArrayDeque<>(parts);
    }

    long nanos() {
      return TimeUnit.MILLISECONDS.toNanos(millis++);
    }

    @Override
    public int available() {
      return !parts.isEmpty() && times.getFirst() <= millis ? parts.getFirst().length() : 0;
    }

    @Override
    public int read() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int read(byte[] target, int offset, int length) {
      if (parts.isEmpty()) {
        return -1;
      }
      millis = Math.max(millis, times.removeFirst());
      byte[] bytes = parts.removeFirst().getBytes(UTF_8);
      System.arraycopy(bytes, 0, target, offset, bytes.length);
      return bytes.length;
    }
  }

  /** Returns what is passed on, with the time; a piece that does not end its line ends with "…". */
  private static List<String> timed(TimedInput input) {
    List<String> seen = new ArrayList<>();
    LinePump.Sink sink =
        new LinePump.Sink() {
          @Override
          public void accept(byte[] line) {
            seen.add(input.millis / 10 + ": " + new String(line, UTF_8));
          }

          @Override
          public boolean takesPieces() {
            return true;
          }

          @Override
          public void piece(byte[] bytes, boolean isLast) {
            seen.add(input.millis / 10 + ": +" + new String(bytes, UTF_8) + (isLast ? "" : "…"));
          }
        };
    new LinePump(input, sink, input::nanos).run();
    return seen;
  }

  @Test
  void passesOnALineThatDoesNotEndAfterATenthOfASecond() {
    assertThat(
            timed(
                new TimedInput(
                    List.of(0L, 500L, 1000L, 2000L, 3000L),
                    List.of("a\nworking", "...", "\nb\n50%\r", "100%\r\n", "end"))))
        .containsExactly(
            "0: a",
            "10: +working…",
            "60: +...…",
            "100: +",
            "100: b",
            "110: +50%\r…",
            "200: +100%",
            "310: +end…",
            "310: +");
  }

  @Test
  void aLineThatGrowsSlowlyIsPassedOnToo() {
    List<Long> times = LongStream.range(0, 10).map(i -> 30 * i).boxed().toList();
    List<String> dots = Collections.nCopies(10, ".");
    assertThat(timed(new TimedInput(times, dots)))
        .containsExactly("10: +....…", "22: +....…", "34: +..…", "34: +");
  }

  @Test
  void aLineThatEndsSoonIsPassedOnAsAWhole() {
    assertThat(timed(new TimedInput(List.of(0L, 50L, 99L), List.of("a", "b", "c\n"))))
        .containsExactly("9: abc");
  }

  @Test
  void breaksALineThatIsTooLong() {
    String piece = "x".repeat(LinePump.MAX_LINE);
    assertThat(lines(piece + piece + "yz\nend\n")).containsExactly(piece, piece, "yz", "end");
    assertThat(lines(piece + "\nend\n")).containsExactly(piece, "end");
  }
}
