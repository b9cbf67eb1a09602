package dev.tutti.runtime.launch;

import java.util.Optional;

/**
 * Open MPI's {@code mpirun}, versions 4 and 5: {@code OMPI_COMM_WORLD_RANK} and related variables.
 */
final class OpenMpi {
  private OpenMpi() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
    if (!variables.anySet("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")) {
      return Optional.empty();
    }
    int rank = variables.required("OMPI_COMM_WORLD_RANK");
    int size = variables.required("OMPI_COMM_WORLD_SIZE");
    boolean isOneHost = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE").orElse(-1) == size;
    String port =
        variables
            .first("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
            .map(JobPort::of)
            .orElse(JobPort.DEFAULT);
    String host = isOneHost ? JobPort.LOOPBACK : Slurm.hostOfMpi(variables, rank);
    return Optional.of(variables.launch(rank, size, host, port));
  }
}
