package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import org.junit.jupiter.api.Test;

class OpenMpiTest {
  /** Recorded from Open MPI 4.1.4. */
  private static final String[] RECORDED = {
    "OMPI_COMM_WORLD_RANK=1",
    "OMPI_COMM_WORLD_SIZE=2",
    "OMPI_COMM_WORLD_LOCAL_RANK=1",
    "OMPI_COMM_WORLD_LOCAL_SIZE=2",
    "OMPI_MCA_ess_base_jobid=383451137",
    "PMIX_NAMESPACE=383451137",
    "PMIX_RANK=1"
  };

  @Test
  void readsRanksOfOneHost() {
    assertThat(Recorded.found(RECORDED))
        .isEqualTo("1/2 at 127.0.0.1:" + JobPort.of("383451137") + " by Open MPI");
  }

  @Test
  void jobsOfOneHostMeetAtDifferentPorts() {
    assertThat(
            Recorded.found("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "PMIX_NAMESPACE=a"))
        .isNotEqualTo(
            Recorded.found("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "PMIX_NAMESPACE=b"));
  }

  @Test
  void knowsNoHostWhereRanksAreOnSeveral() {
    assertThat(
            Recorded.found(
                "OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2"))
        .isEqualTo("2/4 at :29500 by Open MPI");
  }

  @Test
  void meetsAtTheFirstHostOfSlurm() {
    assertThat(
            Recorded.found(
                "OMPI_COMM_WORLD_RANK=2",
                "OMPI_COMM_WORLD_SIZE=4",
                "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                "SLURM_JOB_NODELIST=n[07-08]",
                "SLURM_PROCID=0",
                "SLURM_NTASKS=4",
                "ENVIRONMENT=BATCH"))
        .isEqualTo("2/4 at n07:29500 by Open MPI");
  }

  @Test
  void rankZeroKnowsThatItIsNotOnTheFirstHostOfSlurm() {
    assertThatThrownBy(
            () ->
                Recorded.found(
                    "OMPI_COMM_WORLD_RANK=0",
                    "OMPI_COMM_WORLD_SIZE=4",
                    "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                    "SLURM_JOB_NODELIST=192.0.2.1,b"))
        .isInstanceOf(RendezvousException.class)
        .hasMessageContaining("rank 0 is not on 192.0.2.1, the first host of Slurm's list");
  }

  @Test
  void refusesARankWithoutASize() {
    assertThatThrownBy(() -> Recorded.found("OMPI_COMM_WORLD_RANK=1"))
        .isInstanceOf(RendezvousException.class)
        .hasMessage(
            "cannot determine the rank from Open MPI: OMPI_COMM_WORLD_SIZE is not set; found"
                + " OMPI_COMM_WORLD_RANK=1. "
                + Variables.REMEDY);
  }

  @Test
  void refusesASizeWithoutARank() {
    assertThatThrownBy(() -> Recorded.found("OMPI_COMM_WORLD_SIZE=3"))
        .hasMessageContaining("OMPI_COMM_WORLD_RANK is not set; found OMPI_COMM_WORLD_SIZE=3");
  }

  @Test
  void refusesWhatIsNoRank() {
    assertThatThrownBy(() -> Recorded.found("OMPI_COMM_WORLD_RANK=-1", "OMPI_COMM_WORLD_SIZE=2"))
        .hasMessageContaining("OMPI_COMM_WORLD_RANK must be a whole number from 0; found")
        .hasMessageContaining("OMPI_COMM_WORLD_RANK=-1");
    assertThatThrownBy(() -> Recorded.found("OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=2"))
        .hasMessageContaining("rank 2 is not one of 2 ranks; found OMPI_COMM_WORLD_RANK=2");
  }
}
