package dev.tutti.cli.rank;

import dev.tutti.cli.process.Posix;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The processes whose parents have ended and that the system has given to this process, because it
 * is the first of a container. When they end, they remain as zombies until this process reaps them.
 * The JDK reaps only those that it has started itself, and would miss one of them that is reaped
 * here.
 */
public final class Orphans {
  /** The process id of the process that gets orphans. */
  private static final long INIT = 1;

  private static final ProcessHandle SELF = ProcessHandle.current();

  private Orphans() {}

  /** Returns whether this process gets orphans. */
  public static boolean comeHere() {
    return SELF.pid() == INIT;
  }

  /**
   * Reaps the orphans that have ended.
   *
   * @param started the processes that this process has started itself, and may still have to reap;
   *     others of its own session are left alone as well
   */
  public static void reap(Set<Long> started) {
    try (Stream<ProcessHandle> children = SELF.children()) {
      String session = session(SELF);
      children
          .filter(child -> !started.contains(child.pid()) && isLost(child, session))
          .forEach(child -> Posix.reap(child.pid()));
    } catch (IOException e) {
      // This system has no such files.
    }
  }

  private static boolean isLost(ProcessHandle child, String own) {
    try {
      String[] fields = ProcessTree.fields(stat(child));
      return ProcessTree.isDead(fields) && !fields[3].equals(own);
    } catch (IOException e) {
      return false; // it was reaped in the meantime
    }
  }

  private static String session(ProcessHandle process) throws IOException {
    return ProcessTree.fields(stat(process))[3];
  }

  private static Path stat(ProcessHandle process) {
    return Path.of("/proc", Long.toString(process.pid()), "stat");
  }
}
