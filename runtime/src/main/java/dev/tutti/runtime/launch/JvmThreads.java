package dev.tutti.runtime.launch;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import com.sun.management.HotSpotDiagnosticMXBean;
import dev.tutti.Settings;
import dev.tutti.cpu.wait.HostCores;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The threads of a JVM for which a host has no room where ranks fill its cores. */
public final class JvmThreads {
  /*
   * A rank that waits spins. If each core has a rank, a thread of a garbage collector or compiler
   * that runs takes the core of a rank, and all ranks wait until the scheduler gives it back,
   * milliseconds later. With the defaults of a JVM on 64 cores, there is always such a thread.
   */
  private static final System.Logger LOG = System.getLogger(JvmThreads.class.getName());

  /** The flag for a garbage collector without threads of its own. */
  public static final String COLLECTOR = "-XX:+UseSerialGC";

  private static final int COMPILERS = 2;

  /** The flag for as few compiler threads as a JVM can have. */
  public static final String COMPILER = "-XX:CICompilerCount=" + COMPILERS;

  private static final Path COMMAND_LINE = Path.of("/proc/self/cmdline");
  private static final Pattern FIRST_NUMBER = Pattern.compile("(\\d{1,9})(\\(x\\d+\\))?");
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private JvmThreads() {}

  /**
   * Returns from how many ranks of a host on each has fewer than two cores.
   *
   * @param cores the number of the host's cores
   */
  public static int leastCrowd(int cores) {
    return Math.max(2, cores / 2 + 1);
  }

  /**
   * Warns once if ranks fill the cores of this host and this JVM has threads beyond them; only the
   * first rank of a host does.
   *
   * @param settings the settings, with the variables of the launcher
   */
  public static void warn(Settings settings) {
    warning(settings, HostCores.count(settings), JvmThreads::missing)
        .filter(text -> TOLD.compareAndSet(false, true))
        .ifPresent(text -> LOG.log(Level.WARNING, text));
  }

  /** Returns what to warn of on a host with that many cores and a JVM that lacks some flags. */
  static Optional<String> warning(Settings settings, int cores, Supplier<List<String>> missing) {
    int ranks =
        number(
            settings,
            "LOCAL_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "MPI_LOCALNRANKS",
            "SLURM_STEP_TASKS_PER_NODE");
    int local =
        number(
            settings,
            "LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "MPI_LOCALRANKID",
            "SLURM_LOCALID");
    if (local != 0 || ranks < Math.max(2, cores)) {
      return Optional.empty();
    }
    List<String> flags = missing.get();
    return flags.isEmpty()
        ? Optional.empty()
        : Optional.of(
            ("%d ranks on %d cores: threads of the JVM take cores from ranks, and collectives may"
                    + " take a hundred times as long; give java the flags %s, for instance in"
                    + " JDK_JAVA_OPTIONS")
                .formatted(ranks, cores, String.join(" ", flags)));
  }

  /** Returns the number in the first variable that is set; -1 if it is none, or none is set. */
  private static int number(Settings settings, String... names) {
    for (String name : names) {
      Optional<String> text = settings.text(name);
      if (text.isPresent()) {
        Matcher matcher = FIRST_NUMBER.matcher(text.get().strip());
        return matcher.matches() ? Integer.parseInt(matcher.group(1)) : -1;
      }
    }
    return -1;
  }

  /** Returns the flags that this JVM lacks; none if it does not report them. */
  static List<String> missing() {
    try {
      return areOnCommandLine() ? List.of() : Options.missing();
    } catch (LinkageError | IllegalArgumentException e) {
      return List.of();
    }
  }

  /**
   * Returns whether both are on the command line, which is faster to read than to query the JVM.
   */
  private static boolean areOnCommandLine() {
    try {
      String line = Files.readString(COMMAND_LINE, ISO_8859_1);
      return line.contains("\0" + COLLECTOR + "\0") && line.contains("\0" + COMPILER + "\0");
    } catch (IOException e) {
      return false;
    }
  }

  /** Loaded only when needed, so that the module {@code jdk.management} may be missing. */
  private static final class Options {
    private Options() {}

    static List<String> missing() {
      HotSpotDiagnosticMXBean bean =
          ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class);
      List<String> flags = new ArrayList<>();
      if (bean != null) {
        if (!Boolean.parseBoolean(bean.getVMOption("UseSerialGC").getValue())) {
          flags.add(COLLECTOR);
        }
        if (Integer.parseInt(bean.getVMOption("CICompilerCount").getValue()) > COMPILERS) {
          flags.add(COMPILER);
        }
      }
      return flags;
    }
  }
}
