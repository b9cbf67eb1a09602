package dev.tutti.cli.status;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests which processes of a host are found to be ranks, and where their stores are. */
class LocalJobsTest {
  @TempDir Path folder;

  @Test
  void jobsOfThisHostAreFoundByTheEnvironmentOfTheirRanks() throws Exception {
    Path process = Files.createDirectory(folder.resolve("17"));
    Files.writeString(
        process.resolve("environ"),
        "RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=h1\0MASTER_PORT=4711\0TUTTI_TOKEN=0123456789abcdef\0");
    Files.writeString(
        Files.createDirectory(folder.resolve("18")).resolve("environ"), "MASTER_PORT=1\0HOME=/\0");
    Files.createDirectory(folder.resolve("19"));
    assertThat(LocalJobs.find(folder, folder)).containsOnlyKeys("tcp://h1:4711");
    assertThat(LocalJobs.find(folder, folder).get("tcp://h1:4711").settings().text("TUTTI_TOKEN"))
        .contains("0123456789abcdef");
    assertThat(LocalJobs.find(folder.resolve("none"), folder)).isEmpty();
  }

  @Test
  void onlyAccessToTheStoreIsTakenFromARank() throws Exception {
    Files.writeString(
        Files.createDirectory(folder.resolve("17")).resolve("environ"),
        "RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=h1\0MASTER_PORT=4711\0TUTTI_TLS=true\0"
            + "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE=/ca.pem\0TUTTI_AERON_DIR=/dev/shm/mine\0"
            + "TUTTI_STORE=aeron\0");
    assertThat(LocalJobs.find(folder, folder).get("aeron://h1:4711").settings().names())
        .containsExactlyInAnyOrder(
            "MASTER_ADDR",
            "MASTER_PORT",
            "TUTTI_STORE",
            "TUTTI_TLS",
            "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE");
  }

  @Test
  void processesOfOtherUsersAreNotTrusted() throws Exception {
    Path process = Files.createDirectory(folder.resolve("17"));
    Files.writeString(
        process.resolve("environ"), "RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=h1\0MASTER_PORT=4711\0");
    Path own = Files.createDirectory(folder.resolve("self"));
    assumeTrue((int) Files.getAttribute(own, "unix:uid") == 0, "needs root");
    Files.setAttribute(process, "unix:uid", 65534);
    assertThat(LocalJobs.find(folder, own)).isEmpty();
    Files.setAttribute(own, "unix:uid", 65534);
    assertThat(LocalJobs.find(folder, own)).containsOnlyKeys("tcp://h1:4711");
  }

  /** Writes what the system shows of a process. */
  private void process(int pid, int parent, String environment) throws IOException {
    Path process = Files.createDirectory(folder.resolve("" + pid));
    Files.writeString(process.resolve("environ"), environment.replace(' ', '\0') + "\0");
    Files.writeString(process.resolve("cmdline"), "java\0Train.java\0");
    Files.writeString(process.resolve("status"), "Name:\tjava\nPPid:\t" + parent + "\nUid:\t0\n");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        // srun
        "SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4"
            + " SLURM_STEP_NODELIST=tux[3-4] SLURM_JOB_NODELIST=tux[1-4] | tcp://tux3:24479",
        "SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4"
            + " SLURM_JOB_NODELIST=tux3 MASTER_PORT=4711 TUTTI_STORE=aeron | aeron://tux3:4711",
        // mpirun on one host, and on several
        "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4"
            + " PMIX_NAMESPACE=prterun-host-17@1 | tcp://127.0.0.1:27401",
        "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2"
            + " PMIX_NAMESPACE=prterun-host-17@1 MASTER_ADDR=node1 | tcp://node1:27401",
        // mpiexec.hydra
        "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=2 MASTER_ADDR=node1 | tcp://node1:29500",
        // pods of a job
        "JOB_COMPLETION_INDEX=1 WORLD_SIZE=4 TUTTI_HEADLESS_SERVICE=train HOSTNAME=job-1"
            + " | tcp://job-0.train:29500",
        "JOB_COMPLETION_INDEX=1 WORLD_SIZE=4 MASTER_ADDR=job-0.train | tcp://job-0.train:29500",
        "PET_NODE_RANK=1 PET_NNODES=4 PET_MASTER_ADDR=node1 PET_MASTER_PORT=99 | tcp://node1:99",
        // ranks of tutti run that do not meet at its store
        "RANK=1 WORLD_SIZE=4 MASTER_ADDR=localhost MASTER_PORT=4711"
            + " TUTTI_INIT_METHOD=aeron-cluster://a:1,b:1,c:1/job1?world_size=4"
            + " | aeron-cluster://a:1,b:1,c:1/job1"
      })
  void aRankIsFoundByTheVariablesOfItsLauncher(String environment, String url) throws IOException {
    process(17, 1, environment);
    assertThat(LocalJobs.find(folder, folder)).containsOnlyKeys(url);
    assertThat(LocalJobs.find(folder, folder).get(url).describe())
        .startsWith("rank 1 of 4, java Train.java, user ");
  }

  @ParameterizedTest
  @CsvSource({
    // the script of a Slurm job
    "SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NODELIST=tux3 ENVIRONMENT=BATCH",
    // a part, and variables that contradict each other
    "JOB_COMPLETION_INDEX=1 HOSTNAME=job-1",
    "PMI_RANK=1 PMI_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2"
  })
  void aProcessThatIsNoRankIsNotFound(String environment) throws IOException {
    process(17, 1, environment);
    assertThat(LocalJobs.find(folder, folder)).isEmpty();
  }

  /** As under {@code srun --pty bash}, where each process has the variables of a task. */
  @Test
  void aShellThatIsATaskIsNoRankOfTheJobThatItStarted() throws IOException {
    String task = "SLURM_JOB_ID=42 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1";
    process(17, 1, task);
    process(18, 17, task);
    process(19, 18, task + " RANK=0 WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=4711");
    process(20, 17, task);
    Path own = Files.createSymbolicLink(folder.resolve("self"), folder.resolve("20"));
    assertThat(LocalJobs.find(folder, own)).containsOnlyKeys("tcp://localhost:4711");
  }

  @Test
  void theCommandBesideTheRanksOfAStepIsNoRank() throws IOException {
    String job = "SLURM_JOB_ID=42 SLURM_PROCID=0 SLURM_JOB_NODELIST=tux3 SLURM_STEP_NUM_TASKS=1";
    process(17, 1, job + " SLURM_STEP_ID=0");
    process(20, 1, job + " SLURM_STEP_ID=1");
    Path own = Files.createSymbolicLink(folder.resolve("self"), folder.resolve("20"));
    assertThat(LocalJobs.find(folder, own)).containsOnlyKeys("tcp://tux3:24479");
  }
}
