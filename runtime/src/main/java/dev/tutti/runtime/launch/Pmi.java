package dev.tutti.runtime.launch;

import java.util.Optional;

/**
 * Launchers that speak PMI, such as MPICH's and Intel's {@code mpiexec.hydra} and {@code srun
 * --mpi=pmi2}: {@code PMI_RANK} and {@code PMI_SIZE}. PMIx launchers provide only the rank, in
 * {@code PMIX_RANK}, which is read if {@code WORLD_SIZE} is set.
 */
final class Pmi {
  private Pmi() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
    if (!variables.anySet("PMI_RANK", "PMI_SIZE")) {
      return readPmix(variables);
    }
    int rank = variables.required("PMI_RANK");
    int size = variables.required("PMI_SIZE");
    boolean isOneHost = variables.number("MPI_LOCALNRANKS").orElse(-1) == size;
    String host = isOneHost ? JobPort.LOOPBACK : Slurm.hostOfMpi(variables, rank);
    String port = Slurm.port(variables).orElse(JobPort.DEFAULT);
    return Optional.of(variables.launch(rank, size, host, port));
  }

  private static Optional<Launch> readPmix(Variables variables) {
    if (variables.text("PMIX_RANK").isEmpty() || variables.text("WORLD_SIZE").isEmpty()) {
      return Optional.empty();
    }
    int rank = variables.required("PMIX_RANK");
    int size = variables.required("WORLD_SIZE");
    String host = Slurm.hostOfMpi(variables, rank);
    String port = variables.text("PMIX_NAMESPACE").map(JobPort::of).orElse(JobPort.DEFAULT);
    return Optional.of(variables.launch(rank, size, host, port));
  }
}
