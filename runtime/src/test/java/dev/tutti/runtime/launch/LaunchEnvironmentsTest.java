package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.RendezvousException;
import dev.tutti.Settings;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class LaunchEnvironmentsTest {
  private static final String[] OPEN_MPI = {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4"};

  private static String found(String[] base, String... more) {
    String[] all = java.util.Arrays.copyOf(base, base.length + more.length);
    System.arraycopy(more, 0, all, base.length, more.length);
    return Recorded.found(all);
  }

  @Test
  void listsLaunchersInOrder() {
    assertThat(LaunchEnvironments.launchers())
        .isEqualTo(
            List.of(
                "tutti run or torchrun",
                "PET_ variables",
                "Open MPI",
                "PMI",
                "Slurm",
                "Kubernetes"));
  }

  @Test
  void addsWhatIsMissingAlone() {
    Settings complete =
        LaunchEnvironments.complete(
            Recorded.environment(
                "OMPI_COMM_WORLD_RANK=2",
                "OMPI_COMM_WORLD_SIZE=4",
                "OMPI_COMM_WORLD_LOCAL_SIZE=4",
                "MASTER_PORT=1234"));
    assertThat(complete.text("RANK")).contains("2");
    assertThat(complete.text("WORLD_SIZE")).contains("4");
    assertThat(complete.text("MASTER_ADDR")).contains("127.0.0.1");
    assertThat(complete.text("MASTER_PORT")).contains("1234");
  }

  @Test
  void leavesSettingsAsTheyAreWithoutALauncher() {
    Settings settings = Recorded.environment("WORLD_SIZE=4", "PMIX_RANK=", "ENVIRONMENT=BATCH");
    assertThat(LaunchEnvironments.complete(settings)).isSameAs(settings);
    assertThat(LaunchEnvironments.find(settings)).isEqualTo(Optional.empty());
  }

  /** As set by {@code mpirun -np 2 tutti run --nproc 2}. */
  @Test
  void aLauncherMayStartAnother() {
    assertThat(found(OPEN_MPI, "RANK=3", "WORLD_SIZE=8")).startsWith("3/8");
    assertThat(found(OPEN_MPI, "RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=x"))
        .startsWith("0/2");
    assertThat(found(OPEN_MPI, "PMI_RANK=0", "PMI_SIZE=1")).startsWith("2/4");
    assertThat(found(OPEN_MPI, "RANK=2", "WORLD_SIZE=4")).startsWith("2/4");
  }

  @Test
  void refusesLaunchersThatDisagree() {
    assertThatThrownBy(() -> found(OPEN_MPI, "PMI_RANK=1", "PMI_SIZE=4"))
        .isInstanceOf(RendezvousException.class)
        .hasMessage(
            "Open MPI and PMI disagree on which rank this is: OMPI_COMM_WORLD_RANK=2,"
                + " OMPI_COMM_WORLD_SIZE=4 against PMI_RANK=1, PMI_SIZE=4. Unset the"
                + " variables that do not apply");
    assertThatThrownBy(() -> found(OPEN_MPI, "PMI_RANK=6", "PMI_SIZE=8"))
        .hasMessageContaining("Open MPI and PMI disagree");
  }

  /** As in a shell in which something else has set {@code RANK}. */
  @Test
  void refusesWhatIsLeftOver() {
    assertThatThrownBy(() -> found(OPEN_MPI, "RANK=0", "WORLD_SIZE=1"))
        .hasMessageContaining("tutti run or torchrun and Open MPI disagree")
        .hasMessageContaining("RANK=0, WORLD_SIZE=1 against OMPI_COMM_WORLD_RANK=2");
    assertThatThrownBy(
            () ->
                Recorded.found(
                    "RANK=0",
                    "WORLD_SIZE=4",
                    "SLURM_STEP_ID=0",
                    "SLURM_PROCID=1",
                    "SLURM_NTASKS=4"))
        .hasMessageContaining("tutti run or torchrun and Slurm disagree");
    assertThatThrownBy(() -> found(OPEN_MPI, "WORLD_SIZE=8"))
        .hasMessageContaining("WORLD_SIZE=8 and the 4 ranks of Open MPI disagree; found");
  }

  /** The daemon of {@code mpirun} on the second host is the first task of a Slurm step. */
  @Test
  void mpirunMayStartItsDaemonsBySlurm() {
    assertThat(found(OPEN_MPI, "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=4"))
        .startsWith("2/4");
  }

  @Test
  void aPartOfAnotherLauncherDoesNotCount() {
    assertThat(Recorded.found("RANK=0", "WORLD_SIZE=1", "PMI_RANK=3")).startsWith("0/1");
  }

  @Test
  void listsWhatWasSeenOfALauncherThatSaysNoRank() {
    assertThat(LaunchEnvironments.seen(Recorded.environment("WORLD_SIZE=2", "MASTER_ADDR=node0")))
        .isEqualTo("WORLD_SIZE=2, MASTER_ADDR=node0");
  }

  @Test
  void listsWhatWasSeen() {
    assertThat(
            LaunchEnvironments.seen(
                Recorded.environment(
                    "SLURM_PROCID=0", "ENVIRONMENT=BATCH", "PMIX_RANK=4", "HOME=/root")))
        .isEqualTo("PMIX_RANK=4, SLURM_PROCID=0, ENVIRONMENT=BATCH");
  }
}
