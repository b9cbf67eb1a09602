package dev.tutti.runtime.launch;

import dev.tutti.RendezvousException;
import dev.tutti.Setting;
import dev.tutti.Settings;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Function;

/**
 * Finds the launcher that started this process, in a fixed order, and turns what it provides into
 * the settings of {@code env://}.
 *
 * <p>The first launcher that provides a rank counts. One launcher may have started another: {@code
 * srun} an {@code mpirun}, and that a script which sets {@code RANK}. The inner launcher then has
 * at least as many ranks as the outer one. If it has fewer, or as many in a different order, one of
 * them is left over from something else, and no guess is made.
 */
public final class LaunchEnvironments {
  private static final Launcher TORCHRUN = new Launcher("tutti run or torchrun", Torchrun::read);
  private static final Launcher OPEN_MPI = new Launcher("Open MPI", OpenMpi::read);
  private static final Launcher PMI = new Launcher("PMI", Pmi::read);
  private static final Launcher SLURM = new Launcher("Slurm", Slurm::read);
  private static final List<Launcher> ORDER =
      List.of(
          TORCHRUN,
          new Launcher("PET_ variables", Pet::read),
          OPEN_MPI,
          PMI,
          SLURM,
          new Launcher("Kubernetes", Kubernetes::read));

  /** The name of a launcher in messages, and what reads its variables; empty if not its child. */
  private record Launcher(String launcher, Function<Variables, Optional<Launch>> reader) {
    Optional<Launch> read(Settings settings) {
      return reader.apply(variables(settings));
    }

    Variables variables(Settings settings) {
      return new Variables(settings, launcher);
    }
  }

  private LaunchEnvironments() {}

  /** Returns the names of the launchers, in search order. */
  public static List<String> launchers() {
    return ORDER.stream().map(Launcher::launcher).toList();
  }

  /**
   * Returns what the launcher of this process provides, or empty if none provides a rank.
   *
   * @param settings the settings of this process
   * @throws RendezvousException if a launcher provides only a part, or two provide different ranks,
   *     naming the variables involved
   */
  public static Optional<Launch> find(Settings settings) {
    for (Launcher environment : ORDER) {
      Optional<Launch> found = environment.read(settings);
      if (found.isPresent()) {
        refuseOthers(environment, found.get(), settings);
        return found;
      }
    }
    return Optional.empty();
  }

  /**
   * Returns the settings, completed with the launcher's values for whichever of {@code RANK},
   * {@code WORLD_SIZE}, {@code MASTER_ADDR} and {@code MASTER_PORT} they lack.
   *
   * @param settings the settings of this process
   * @throws RendezvousException as {@link #find} does
   */
  public static Settings complete(Settings settings) {
    Optional<Launch> found = find(settings);
    if (found.isEmpty()) {
      return settings;
    }
    Launch launch = found.get();
    Settings complete = with(settings, RuntimeSettings.RANK, launch.rank());
    complete = with(complete, RuntimeSettings.WORLD_SIZE, launch.size());
    complete = with(complete, RuntimeSettings.MASTER_ADDR, launch.host());
    return with(complete, RuntimeSettings.MASTER_PORT, launch.port());
  }

  /** Returns all launcher variables that are set, for messages; empty if there are none. */
  public static String seen(Settings settings) {
    Map<String, String> seen = new LinkedHashMap<>();
    for (Launcher environment : ORDER) {
      Variables variables = environment.variables(settings);
      readWhole(environment, variables);
      seen.putAll(variables.seen());
    }
    return Launch.text(seen);
  }

  /**
   * Returns how to run a command on a host of ranks that are not on this one, for messages.
   *
   * @param settings the settings of this process, which is not a rank
   */
  public static String onTheirHost(Settings settings, String command) {
    Variables variables = SLURM.variables(settings);
    Optional<String> job = variables.first("SLURM_JOB_ID", "SLURM_JOBID");
    String how =
        job.isPresent()
            ? "srun --jobid=%s --overlap -N 1 -n 1 -w %s"
                .formatted(job.get(), Slurm.firstHost(variables).orElse("HOST"))
            : variables.text("KUBERNETES_SERVICE_HOST").isPresent()
                ? "kubectl exec POD --"
                : "ssh HOST";
    return how + " " + command;
  }

  private static Optional<Launch> readWhole(Launcher environment, Variables variables) {
    try {
      return environment.reader().apply(variables);
    } catch (RendezvousException e) {
      // Only a part, from a launcher that does not count here.
      return Optional.empty();
    }
  }

  private static Settings with(Settings settings, Setting<String> setting, String value) {
    return value.isEmpty() || settings.text(setting.name()).isPresent()
        ? settings
        : settings.with(setting, value);
  }

  private static void refuseOthers(Launcher by, Launch launch, Settings settings) {
    String worldSize = settings.get(RuntimeSettings.WORLD_SIZE);
    if (!by.equals(TORCHRUN) && !worldSize.isEmpty() && !worldSize.equals(launch.size())) {
      throw new RendezvousException(
          "WORLD_SIZE=%s and the %s ranks of %s disagree; found %s. %s"
              .formatted(
                  worldSize,
                  launch.size(),
                  launch.launcher(),
                  launch.seenText(),
                  Variables.REMEDY));
    }
    if (by.equals(TORCHRUN) && settings.text("TORCHELASTIC_RUN_ID").isPresent()) {
      // The launcher set these for its own children: nothing can be left over from another job.
      return;
    }
    for (Launcher other : mayNotContradict(by)) {
      Optional<Launch> found = readWhole(other, other.variables(settings));
      if (found.isPresent() && contradict(launch, found.get())) {
        throw new RendezvousException(
            ("%s and %s disagree on which rank this is: %s against %s. Unset the variables that"
                    + " do not apply")
                .formatted(
                    launch.launcher(),
                    found.get().launcher(),
                    launch.seenText(),
                    found.get().seenText()));
      }
    }
  }

  /**
   * Leaves out Slurm for MPI launchers, which use it to start their own daemons, one on each host.
   */
  private static List<Launcher> mayNotContradict(Launcher chosen) {
    List<Launcher> later = ORDER.subList(ORDER.indexOf(chosen) + 1, ORDER.size());
    boolean isMpi = chosen.equals(OPEN_MPI) || chosen.equals(PMI);
    return later.stream()
        .filter(
            other -> other.equals(OPEN_MPI) || other.equals(PMI) || (other.equals(SLURM) && !isMpi))
        .toList();
  }

  private static boolean contradict(Launch inner, Launch outer) {
    OptionalInt size = number(inner.size());
    OptionalInt rank = number(inner.rank());
    if (size.isEmpty() || rank.isEmpty()) {
      return false;
    }
    int outerSize = Integer.parseInt(outer.size());
    return size.getAsInt() < outerSize
        || (size.getAsInt() == outerSize && rank.getAsInt() != Integer.parseInt(outer.rank()));
  }

  private static OptionalInt number(String text) {
    try {
      return OptionalInt.of(Integer.parseInt(text));
    } catch (NumberFormatException e) {
      return OptionalInt.empty();
    }
  }
}
