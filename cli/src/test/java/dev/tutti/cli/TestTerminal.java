package dev.tutti.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.process.Terminal;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Map;

/** A terminal that keeps what commands print. */
public final class TestTerminal {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final int columns;

  public TestTerminal() {
    this(120);
  }

  /**
   * Creates a terminal.
   *
   * @param columns the width at which text is wrapped
   */
  public TestTerminal(int columns) {
    this.columns = columns;
  }

  /** Runs {@code tutti}, and returns its exit code. */
  public int tutti(Map<String, String> environment, String... arguments) {
    return Main.execute(terminal(), environment, arguments);
  }

  public Terminal terminal() {
    return terminal(new PrintStream(out, true, UTF_8));
  }

  /** Returns a terminal with another standard output, which is not kept. */
  public Terminal terminal(PrintStream other) {
    return new Terminal(other, new PrintStream(err, true, UTF_8), false, false, columns);
  }

  /** Returns what was printed to the standard output since the last {@link #reset}. */
  public String out() {
    return out.toString(UTF_8);
  }

  /** Returns what was printed to the standard error since the last {@link #reset}. */
  public String err() {
    return err.toString(UTF_8);
  }

  public void reset() {
    out.reset();
    err.reset();
  }
}
