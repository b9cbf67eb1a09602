package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import org.junit.jupiter.api.Test;

class PmiTest {
  /** Recorded from MPICH 4.0.2. */
  private static final String[] HYDRA = {
    "PMI_FD=6", "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0"
  };

  @Test
  void readsRanksOfHydraOnOneHost() {
    assertThat(Recorded.found(HYDRA)).isEqualTo("0/2 at 127.0.0.1:29500 by PMI");
  }

  @Test
  void knowsNoHostWhereRanksAreOnSeveral() {
    assertThat(Recorded.found("PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALNRANKS=2"))
        .isEqualTo("3/4 at :29500 by PMI");
  }

  @Test
  void meetsAtTheFirstHostOfSlurm() {
    assertThat(
            Recorded.found(
                "PMI_RANK=3",
                "PMI_SIZE=4",
                "SLURM_PROCID=3",
                "SLURM_NTASKS=4",
                "SLURM_JOB_ID=77",
                "SLURM_STEP_ID=1",
                "SLURM_STEP_NODELIST=a[3,5]"))
        .isEqualTo("3/4 at a3:" + JobPort.of("77.1") + " by PMI");
  }

  /**
   * As set by {@code mpiexec -hosts b,c} in a job on a, b and c; 192.0.2.1 is no host's address.
   */
  @Test
  void rankZeroKnowsThatItIsNotOnTheFirstHostOfSlurm() {
    String job = "SLURM_JOB_NODELIST=192.0.2.1,b,c";
    assertThatThrownBy(() -> Recorded.found("PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALNRANKS=2", job))
        .isInstanceOf(RendezvousException.class)
        .hasMessage(
            "rank 0 is not on 192.0.2.1, the first host of Slurm's list, where the other ranks look"
                + " for it; found PMI_RANK=0, PMI_SIZE=4, MPI_LOCALNRANKS=2, "
                + job
                + ". Set MASTER_ADDR to the host of rank 0");
    assertThatThrownBy(() -> Recorded.found("PMIX_RANK=0", "WORLD_SIZE=4", "PMIX_NAMESPACE=x", job))
        .hasMessageContaining("rank 0 is not on 192.0.2.1");
    assertThat(Recorded.found("PMI_RANK=1", "PMI_SIZE=4", "MPI_LOCALNRANKS=2", job))
        .isEqualTo("1/4 at 192.0.2.1:29500 by PMI");
    assertThat(Recorded.found("PMI_RANK=0", "PMI_SIZE=4", "MASTER_ADDR=b", job))
        .isEqualTo("0/4 at 192.0.2.1:29500 by PMI");
    assertThat(Recorded.found("PMI_RANK=0", "PMI_SIZE=4", "SLURM_JOB_NODELIST=127.0.0.1,b,c"))
        .isEqualTo("0/4 at 127.0.0.1:29500 by PMI");
  }

  @Test
  void readsPmixWhereTheSizeIsSaid() {
    assertThat(Recorded.found("PMIX_RANK=1", "WORLD_SIZE=2", "PMIX_NAMESPACE=prterun-h-7@1"))
        .isEqualTo("1/2 at :" + JobPort.of("prterun-h-7@1") + " by PMI");
    assertThat(Recorded.found("PMIX_RANK=1")).isEqualTo("none");
  }

  @Test
  void refusesAPart() {
    assertThatThrownBy(() -> Recorded.found("PMI_RANK=1"))
        .hasMessageContaining("PMI_SIZE is not set; found PMI_RANK=1");
    assertThatThrownBy(() -> Recorded.found("PMI_SIZE=2"))
        .hasMessageContaining("PMI_RANK is not set; found PMI_SIZE=2");
  }
}
