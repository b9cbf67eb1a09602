package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PetTest {
  /**
   * The variables that Kubeflow's torch policy sets for the second of three nodes with one process
   * each.
   */
  private static final String[] TRAIN_JOB = {
    "PET_NNODES=3",
    "PET_NPROC_PER_NODE=1",
    "PET_NODE_RANK=1",
    "PET_MASTER_ADDR=job-node-0-0.job",
    "PET_MASTER_PORT=29400",
    "JOB_COMPLETION_INDEX=1"
  };

  @Test
  void aNodeIsARank() {
    assertThat(Recorded.found(TRAIN_JOB))
        .isEqualTo("1/3 at job-node-0-0.job:29400 by PET_ variables");
  }

  @Test
  void refusesSeveralRanksOnANode() {
    assertThatThrownBy(
            () -> Recorded.found("PET_NNODES=3", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=auto"))
        .hasMessageContaining(
            "PET_NPROC_PER_NODE requests several ranks on each node; start them with 'tutti run'")
        .hasMessageContaining("PET_NPROC_PER_NODE=auto");
  }

  @Test
  void refusesAPart() {
    assertThatThrownBy(() -> Recorded.found("PET_NNODES=3"))
        .hasMessageContaining("PET_NODE_RANK is not set; found PET_NNODES=3");
    assertThatThrownBy(() -> Recorded.found("PET_NODE_RANK=0", "PET_NNODES=1:4"))
        .hasMessageContaining("PET_NNODES must be a whole number from 0; found");
  }
}
