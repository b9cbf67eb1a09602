package dev.tutti.runtime.launch;

import java.util.Optional;

/**
 * Variables meant for a {@code torchrun} that was not started: {@code PET_NNODES}, {@code
 * PET_NODE_RANK}, {@code PET_MASTER_ADDR}, {@code PET_MASTER_PORT}, as Kubeflow sets them for a
 * TrainJob. A node is then one rank; several ranks on a node need {@code tutti run}, which reads
 * the same variables.
 */
final class Pet {
  private static final String PROCESSES = "PET_NPROC_PER_NODE";

  private Pet() {}

  /** Reads what the launcher provides; empty if it did not start the process. */
  static Optional<Launch> read(Variables variables) {
    if (!variables.anySet("PET_NODE_RANK", "PET_NNODES")) {
      return Optional.empty();
    }
    if (!variables.text(PROCESSES).orElse("1").equals("1")) {
      throw variables.refusal(
          PROCESSES + " requests several ranks on each node; start them with 'tutti run'");
    }
    int rank = variables.required("PET_NODE_RANK");
    int size = variables.required("PET_NNODES");
    String host = variables.text("PET_MASTER_ADDR").orElse("");
    String port = variables.text("PET_MASTER_PORT").orElse("");
    return Optional.of(variables.launch(rank, size, host, port));
  }
}
