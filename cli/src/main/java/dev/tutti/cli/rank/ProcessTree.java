package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.tutti.cli.process.Posix;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A started process with all of its descendants, as the target of signals.
 *
 * <p>If the system has {@code setsid}, the process gets its own session. A signal to the group then
 * also reaches children whose parent is gone, and Ctrl-C at a terminal reaches only the launcher,
 * which forwards it once. If {@code setpriv} supports {@code --pdeathsig}, the process is killed
 * when the launcher dies without a chance to do so itself.
 */
public final class ProcessTree {
  private final ProcessHandle root;
  private final boolean ownGroup;

  private ProcessTree(ProcessHandle root, boolean ownGroup) {
    this.root = root;
    this.ownGroup = ownGroup;
  }

  /**
   * Returns the command that starts a command in its own session, as far as the system supports
   * that.
   *
   * @param command the program and its arguments
   */
  public static List<String> isolated(List<String> command) {
    List<String> result = new ArrayList<>(Tools.PREFIX);
    result.addAll(command);
    return result;
  }

  /**
   * Returns the command that starts a command in its own session, which outlives this process;
   * empty if the system does not support that.
   *
   * @param command the program and its arguments
   */
  public static Optional<List<String>> inOwnSession(List<String> command) {
    return Tools.PREFIX.stream()
        .findFirst()
        .map(setsid -> Stream.concat(Stream.of(setsid), command.stream()).toList());
  }

  /**
   * Creates the tree of a process that was started by an {@link #isolated} command.
   *
   * @param process the process
   */
  public static ProcessTree of(Process process) {
    return new ProcessTree(process.toHandle(), !Tools.PREFIX.isEmpty());
  }

  /** Returns the process id of the root. */
  public long pid() {
    return root.pid();
  }

  /** Sends a signal to every process, once. */
  public void signal(int signal) {
    if (ownGroup && Posix.kill(-root.pid(), signal)) {
      return;
    }
    // There is no own group, or not yet: the root has not reached its setsid.
    List<ProcessHandle> all = new ArrayList<>(descendants());
    if (root.isAlive()) {
      all.add(root);
    }
    for (ProcessHandle process : all) {
      deliver(process, signal);
    }
  }

  /** Sends SIGKILL to every process, including those that have left the group. */
  public void kill() {
    List<ProcessHandle> all = descendants();
    signal(Posix.SIGKILL);
    for (ProcessHandle process : all) {
      process.destroyForcibly();
    }
  }

  /** Returns whether the root or a process of its group is running. */
  public boolean isAlive() {
    return root.isAlive() || (ownGroup && Posix.kill(-root.pid(), 0) && groupRuns(root.pid()));
  }

  /**
   * Returns whether a group has a process other than zombies, which merely wait to be reaped by
   * their parents.
   */
  private static boolean groupRuns(long group) {
    Path proc = Path.of("/proc");
    if (!Files.isReadable(proc.resolve("self/stat"))) {
      return true;
    }
    try (Stream<ProcessHandle> all = ProcessHandle.allProcesses()) {
      return all.anyMatch(process -> runsIn(group, proc.resolve(process.pid() + "/stat")));
    }
  }

  private static boolean runsIn(long group, Path stat) {
    try {
      String[] fields = fields(stat);
      return !isDead(fields) && Long.parseLong(fields[2]) == group;
    } catch (IOException e) {
      return false; // it ended in the meantime
    }
  }

  /**
   * Returns whether the root has ended and merely waits to be reaped by its parent, this process.
   */
  boolean isRootDead() {
    try {
      return isDead(fields(Path.of("/proc", Long.toString(root.pid()), "stat")));
    } catch (IOException e) {
      return !root.isAlive(); // it was reaped in the meantime, or this system has no such file
    }
  }

  /** Reads the state, parent, group and session of a process, and the remaining fields. */
  static String[] fields(Path stat) throws IOException {
    // pid (name) state parent group session ...; the name may contain any character
    String text = Files.readString(stat, ISO_8859_1);
    return text.substring(text.lastIndexOf(')') + 2).split(" ", 5);
  }

  /** Returns whether the fields are those of a process that has ended. */
  static boolean isDead(String[] fields) {
    return fields[0].equals("Z") || fields[0].equals("X");
  }

  private List<ProcessHandle> descendants() {
    try (Stream<ProcessHandle> all = root.descendants()) {
      return all.toList();
    }
  }

  private static void deliver(ProcessHandle process, int signal) {
    if (Posix.kill(process.pid(), signal)) {
      return;
    }
    if (signal == Posix.SIGKILL) {
      process.destroyForcibly();
    } else {
      process.destroy();
    }
  }

  /** The tools of the system, looked up once, when the first process is started. */
  private static final class Tools {
    static final List<String> PREFIX = find();

    private static List<String> find() {
      Optional<Path> setsid = Program.find("setsid", System.getenv());
      if (setsid.isEmpty() || !works(List.of(setsid.get().toString(), "true"))) {
        return List.of();
      }
      List<String> prefix = new ArrayList<>(List.of(setsid.get().toString()));
      Optional<Path> setpriv = Program.find("setpriv", System.getenv());
      if (setpriv.isPresent()) {
        List<String> onDeath = List.of(setpriv.get().toString(), "--pdeathsig", "KILL");
        List<String> probe = new ArrayList<>(onDeath);
        probe.add("true");
        if (works(probe)) {
          prefix.addAll(onDeath);
        }
      }
      return List.copyOf(prefix);
    }

    private static boolean works(List<String> command) {
      try {
        Process process =
            new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        if (process.waitFor(Duration.ofMinutes(1))) {
          return process.exitValue() == 0;
        }
        process.destroyForcibly();
        return false;
      } catch (IOException e) {
        return false;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return false;
      }
    }
  }
}
