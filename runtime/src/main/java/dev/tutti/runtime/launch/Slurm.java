package dev.tutti.runtime.launch;

import dev.tutti.RendezvousException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Tasks started by Slurm's {@code srun}: {@code SLURM_PROCID} and {@code SLURM_NTASKS}. The store
 * is on the first host of the step, on a port derived from the job and the step. A batch script
 * also has these variables, as task 0 of all tasks, but it has no step: it is not a rank.
 */
final class Slurm {
  private static final String RANK = "SLURM_PROCID";

  private Slurm() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
    if (variables.text(RANK).isEmpty() || isBatchScript(variables)) {
      return Optional.empty();
    }
    int rank = variables.required(RANK);
    String counted = firstSet(variables, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS");
    int size = variables.required(counted);
    variables.text("SLURM_LOCALID");
    String host = firstHost(variables).orElse("");
    String port = port(variables).orElse("");
    return Optional.of(variables.launch(rank, size, host, port));
  }

  private static boolean isBatchScript(Variables variables) {
    return step(variables).isEmpty() && variables.text("ENVIRONMENT").orElse("").equals("BATCH");
  }

  private static String firstSet(Variables variables, String... names) {
    return Stream.of(names)
        .filter(name -> variables.text(name).isPresent())
        .findFirst()
        .orElse(names[1]);
  }

  private static Optional<String> step(Variables variables) {
    return variables.first("SLURM_STEP_ID", "SLURM_STEPID");
  }

  /** Returns the first host of the step, or of the job, if this is a Slurm job. */
  static Optional<String> firstHost(Variables variables) {
    Optional<String> list =
        variables.first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST");
    try {
      return list.map(SlurmHosts::first);
    } catch (IllegalArgumentException e) {
      throw variables.refusal(String.valueOf(e.getMessage()));
    }
  }

  /**
   * Returns the first host, where a launcher of MPI in a Slurm job starts rank 0 unless it was
   * given other hosts; empty if this is no Slurm job.
   *
   * @throws RendezvousException on rank 0, if it is on another host and nothing else says where
   */
  static String hostOfMpi(Variables variables, int rank) {
    String host = firstHost(variables).orElse("");
    if (rank == 0 && variables.text("MASTER_ADDR").isEmpty() && isElsewhere(host)) {
      throw new RendezvousException(
          ("rank 0 is not on %s, the first host of Slurm's list, where the other ranks look for it;"
                  + " found %s. Set MASTER_ADDR to the host of rank 0")
              .formatted(host, Launch.text(variables.seen())));
    }
    return host;
  }

  /** Returns whether a name is certainly that of another host. */
  private static boolean isElsewhere(String host) {
    try {
      for (InetAddress address : InetAddress.getAllByName(host)) {
        if (address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null) {
          return false;
        }
      }
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Returns the port of the store, if this is a Slurm job. */
  static Optional<String> port(Variables variables) {
    Optional<String> job = variables.first("SLURM_JOB_ID", "SLURM_JOBID");
    String step = step(variables).orElse("0");
    return job.map(id -> JobPort.of(id + "." + step));
  }
}
