package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A process that kills the ranks when the launcher dies without a chance to do so itself.
 *
 * <p>It is a shell that reads from a pipe which process groups live. The system closes the pipe
 * when the launcher is gone, however it died, and the shell then kills those groups. So it also
 * reaches ranks behind a shell of their own, which the parent-death signal of that shell does not.
 * It is in a session of its own, so that Ctrl-C at a terminal leaves it alone. Used by the
 * launcher's thread.
 */
public final class DeathWatch implements AutoCloseable {
  private static final String SCRIPT =
      """
      live=' '
      while read -r sign group; do
        case $sign in
          +) live="$live$group " ;;
          -) live="${live%%" $group "*} ${live#*" $group "}" ;;
        esac
      done
      for group in $live; do
        kill -s KILL -- "-$group" 2> /dev/null
      done
      """;

  private final @Nullable Process shell;

  private DeathWatch(@Nullable Process shell) {
    this.shell = shell;
  }

  /** Starts a watch, which watches nothing if the system has no {@code setsid} or no shell. */
  public static DeathWatch start() {
    Optional<List<String>> command =
        Program.find("sh", System.getenv())
            .flatMap(sh -> ProcessTree.inOwnSession(List.of(sh.toString(), "-c", SCRIPT)));
    if (command.isEmpty()) {
      return new DeathWatch(null);
    }
    try {
      ProcessBuilder builder =
          new ProcessBuilder(command.get())
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .redirectError(ProcessBuilder.Redirect.DISCARD);
      Map<String, String> environment = builder.environment();
      environment.clear();
      return new DeathWatch(builder.start());
    } catch (IOException e) {
      return new DeathWatch(null);
    }
  }

  /** Returns the process ids of the watch. */
  public List<Long> pids() {
    List<Long> pids = new ArrayList<>();
    if (shell != null) {
      pids.add(shell.pid());
    }
    return pids;
  }

  /** Watches over a process group. */
  public void add(long group) {
    tell("+ " + group);
  }

  /** Forgets a process group, whose number the system may use again. */
  public void remove(long group) {
    tell("- " + group);
  }

  private void tell(String line) {
    if (shell == null) {
      return;
    }
    try {
      OutputStream pipe = shell.getOutputStream();
      pipe.write((line + '\n').getBytes(US_ASCII));
      pipe.flush();
    } catch (IOException e) {
      System.getLogger("dev.tutti.cli")
          .log(System.Logger.Level.DEBUG, "nobody watches over the ranks of this launcher", e);
    }
  }

  /** Ends the watch, which then kills the groups that it still has. */
  @Override
  public void close() {
    if (shell != null) {
      try {
        shell.getOutputStream().close();
      } catch (IOException e) {
        // The shell has ended.
      }
    }
  }
}
