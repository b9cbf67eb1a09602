package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class SlurmTest {
  private static final String PORT = JobPort.of("1234.0");

  @Test
  void readsATaskOfAStep() {
    assertThat(
            Recorded.found(
                "SLURM_JOB_ID=1234",
                "SLURM_STEP_ID=0",
                "SLURM_PROCID=5",
                "SLURM_NTASKS=8",
                "SLURM_LOCALID=1",
                "SLURM_JOB_NODELIST=tux[3,5-7]"))
        .isEqualTo("5/8 at tux3:" + PORT + " by Slurm");
  }

  @Test
  void aStepMayHaveFewerTasksAndHostsThanTheJob() {
    assertThat(
            Recorded.found(
                "SLURM_JOB_ID=1234",
                "SLURM_STEP_ID=0",
                "SLURM_PROCID=1",
                "SLURM_NTASKS=8",
                "SLURM_STEP_NUM_TASKS=2",
                "SLURM_JOB_NODELIST=tux[3-7]",
                "SLURM_STEP_NODELIST=tux[6-7]"))
        .isEqualTo("1/2 at tux6:" + PORT + " by Slurm");
  }

  @Test
  void stepsOfOneJobMeetAtDifferentPorts() {
    assertThat(JobPort.of("1234.1")).isNotEqualTo(PORT);
  }

  @Test
  void aBatchScriptIsNoRank() {
    assertThat(
            Recorded.found(
                "ENVIRONMENT=BATCH",
                "SLURM_JOB_ID=1234",
                "SLURM_PROCID=0",
                "SLURM_NTASKS=8",
                "SLURM_JOB_NODELIST=tux3"))
        .isEqualTo("none");
  }

  @Test
  void ignoresWhiteSpaceAroundVariables() {
    assertThat(
            Recorded.found(
                "SLURM_JOB_ID=1234\n",
                "SLURM_STEP_ID=0\r\n",
                "SLURM_PROCID= 5",
                "SLURM_NTASKS=8\n",
                "SLURM_STEP_NODELIST=\n",
                "SLURM_JOB_NODELIST=tux[3,5-7]\n"))
        .isEqualTo("5/8 at tux3:" + PORT + " by Slurm");
  }

  @Test
  void refusesARankWithoutASize() {
    assertThatThrownBy(() -> Recorded.found("SLURM_STEP_ID=0", "SLURM_PROCID=3"))
        .hasMessageContaining("SLURM_NTASKS is not set; found SLURM_PROCID=3, SLURM_STEP_ID=0");
  }

  @Test
  void refusesAListOfHostsThatCannotBeRead() {
    assertThatThrownBy(
            () ->
                Recorded.found(
                    "SLURM_STEP_ID=0",
                    "SLURM_PROCID=0",
                    "SLURM_NTASKS=2",
                    "SLURM_JOB_NODELIST=n[1-"))
        .hasMessageContaining("'n[1-' is not a list of hosts; found SLURM_PROCID=0");
  }
}
