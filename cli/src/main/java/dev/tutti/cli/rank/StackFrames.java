package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Patterns that distinguish frames of stack traces from other lines. */
final class StackFrames {
  private static final Pattern FRAME =
      Pattern.compile("\\s+(?:at (\\S+)\\(.*\\).*|\\.\\.\\. \\d+ (?:more|common frames omitted))");

  /** The packages whose frames are internal; frames of what users call remain. */
  private static final Pattern INSIDE =
      Pattern.compile(
          "(?:\\S*/)?(?:dev\\.tutti\\.(?:runtime|cpu|spi|store|gloo|cuda|aeron|fake"
              + "|gradients|checkpoint|djl|pytorch|spark|lightgbm|guice|micrometer)\\."
              + "|jdk\\.internal\\.|java\\.base/(?:java\\.util\\.concurrent|java\\.lang\\.Thread)).*");

  private StackFrames() {}

  /** Returns whether a line is a frame of a stack trace. */
  static boolean isFrame(byte[] line) {
    return mayBe(line) && FRAME.matcher(new String(line, UTF_8)).matches();
  }

  /** Returns whether a line is a frame inside Tutti or the thread code of the JDK. */
  static boolean isInside(byte[] line) {
    if (!mayBe(line)) {
      return false;
    }
    Matcher frame = FRAME.matcher(new String(line, UTF_8));
    return frame.matches() && frame.group(1) != null && INSIDE.matcher(frame.group(1)).matches();
  }

  private static boolean mayBe(byte[] line) {
    return line.length > 0 && (line[0] == '\t' || line[0] == ' ');
  }
}
