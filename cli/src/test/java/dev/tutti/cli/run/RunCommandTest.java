package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.cli.process.LaunchException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the options and variables of {@code tutti run} mean, without running a command. */
class RunCommandTest {
  private final TestTerminal terminal = new TestTerminal();
  private final Map<String, String> environment = new HashMap<>(System.getenv());

  /** Parses a command line and returns the resulting plan, without running it. */
  private LaunchPlan planOf(String... arguments) {
    AtomicReference<LaunchPlan> plan = new AtomicReference<>();
    LaunchRendezvousFactory rendezvousFactory =
        (wanted, _) -> {
          plan.set(wanted);
          throw new LaunchException(77, "planned");
        };
    String[] all = Stream.concat(Stream.of("run"), Stream.of(arguments)).toArray(String[]::new);
    Main.execute(rendezvousFactory, terminal.terminal(), environment, all);
    return plan.get();
  }

  @Test
  void nodesMayComeAndGo() {
    LaunchPlan plan = planOf("--elastic", "--nnodes=2:4", "--node-rank=3", "true");
    assertThat(plan.nodes()).isEqualTo(4);
    assertThat(plan.range()).hasValue(new NodeRange(2, 4, Optional.empty()));
    assertThat(planOf("--elastic", "--nnodes=2:2", "true").range()).isEmpty();
  }

  @Test
  void nodesMayMeetAtAStoreThatNoneServes() {
    String[] elastic = {"--elastic", "--nnodes=2:4", "", "true"};
    elastic[2] = "--rdzv-endpoint=aeron://[::1]:1234";
    LaunchPlan plan = planOf(elastic);
    assertThat(plan.range().orElseThrow().store()).hasValue("aeron://[::1]:1234");
    assertThat(plan.masterAddress()).isEqualTo("::1");
    assertThat(plan.masterPort()).isEqualTo(1234);
    assertThat(plan.environment()).containsEntry("TUTTI_STORE", "aeron");
    elastic[2] = "--rdzv-endpoint=aeron-cluster://a:1,b:2,c:3/job";
    plan = planOf(elastic);
    assertThat(plan.masterAddress()).isEqualTo("a");
    assertThat(plan.masterPort()).isEqualTo(1);
    assertThat(plan.environment())
        .containsEntry("TUTTI_INIT_METHOD", "aeron-cluster://a:1,b:2,c:3/job");
  }

  @Test
  void takesTheNamesOfTorchrun() {
    LaunchPlan plan =
        planOf(
            "--nnodes=2",
            "--nproc_per_node=3",
            "--node_rank",
            "1",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=head:1234",
            "--rdzv-id=job",
            "--max-restarts=4",
            "--role=trainer",
            "python",
            "train.py",
            "--nproc_per_node=9",
            "--debug");
    assertThat(plan.nodes()).isEqualTo(2);
    assertThat(plan.localSize()).isEqualTo(3);
    assertThat(plan.nodeRank()).isEqualTo(1);
    assertThat(plan.masterAddress()).isEqualTo("head");
    assertThat(plan.masterPort()).isEqualTo(1234);
    assertThat(plan.runId()).isEqualTo("job");
    assertThat(plan.maxRestarts()).isEqualTo(4);
    assertThat(plan.role()).isEqualTo("trainer");
    assertThat(plan.command())
        .containsExactly("python", "train.py", "--nproc_per_node=9", "--debug");
  }

  @Test
  void hasTheDefaultsOfTorchrun() {
    LaunchPlan plan = planOf("--", "true");
    assertThat(plan.localSize()).isEqualTo(1);
    assertThat(plan.nodes()).isEqualTo(1);
    assertThat(plan.masterAddress()).isEqualTo("127.0.0.1");
    assertThat(plan.masterPort()).isZero();
    assertThat(plan.maxRestarts()).isZero();
    assertThat(plan.role()).isEqualTo("default");
    assertThat(plan.command()).containsExactly("true");
    assertThat(planOf("--nnodes=2", "true").masterPort()).isEqualTo(29500);
  }

  @Test
  void takesOptionsFromTheEnvironment() {
    environment.put("PET_NPROC_PER_NODE", "5");
    environment.put("PET_MASTER_ADDR", "head");
    LaunchPlan plan = planOf("true");
    assertThat(plan.localSize()).isEqualTo(5);
    assertThat(plan.masterAddress()).isEqualTo("head");
    assertThat(planOf("--nproc=2", "true").localSize()).isEqualTo(2);
    assertThat(planOf("--nproc_per_node=4", "true").localSize()).isEqualTo(4);
    assertThat(planOf("--master_addr", "other", "true").masterAddress()).isEqualTo("other");
    assertThat(planOf("--master_addr", "other", "true").localSize()).isEqualTo(5);
  }

  @ParameterizedTest
  @CsvSource({"1, true", "2, true", "true, true", "0, false", "false, false"})
  void takesFlagsFromTheEnvironmentLikeTorchrun(String text, boolean standalone) {
    environment.put("PET_STANDALONE", text);
    assertThat(planOf("true")).isNotNull();
    assertThat(planOf("--nnodes=2", "true") == null).isEqualTo(standalone);
    assertThat(planOf("--standalone", "--nnodes=2", "true")).isNull();
  }

  @Test
  void jobsAreElasticOnRequest() {
    assertThat(planOf("true").isElastic()).isFalse();
    assertThat(planOf("--elastic", "true").isElastic()).isTrue();
    assertThat(planOf("--elastic", "--nnodes=2", "true").isElastic()).isTrue();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--nproc=0 | --nproc must be at least 1, not 0",
        "--nproc=many | --nproc must be a number or 'cpu', not 'many'",
        "--node-rank=1 | --node-rank must be from 0 to 0, not 1",
        "--master-port=65536 | --master-port must be from 0 to 65535, not 65536",
        "--max-restarts=-1 | --max-restarts must not be negative: -1",
        "--rdzv-backend=etcd | --rdzv-backend must be static or c10d, not 'etcd'",
        "--rdzv-endpoint=a:b | --rdzv-endpoint=a:b: the port must be a number from 1 to 65535",
        "--master-addr=a:1 | --master-addr must be a host without a port, not 'a:1'",
        "--tail=-5 | --tail must not be negative: -5",
        "--rdzv-timeout=0 | --rdzv-timeout must be longer than 0",
        "--nnodes=-1 | --nnodes must be at least 1, not -1",
        "--rdzv-id=../.. | --rdzv-id must be a name without '/'",
        "--rdzv-id=.. | --rdzv-id must be a name without '/'",
        "--rdzv-id=/etc | --rdzv-id must be a name without '/'",
        "--rdzv-endpoint=a: | --rdzv-endpoint=a:: the port must be a number from 1 to 65535",
        "--log-dir= | option '--log-dir': '' is no file or folder",
        "--linger=-1 | option '--linger': '-1': expected a time such as 30, 250ms, 5m or 1.5h"
            + " (",
        "--grace=soon | Invalid value for option '--grace'",
        "--linger=soon | Invalid value for option '--linger'",
        "--bogus | Unknown option: '--bogus'",
        "--nproc-per-node=0 | --nproc-per-node must be at least 1, not 0",
        "--nproc_per_node=0 | --nproc_per_node must be at least 1, not 0",
        "--nnodes=two | --nnodes must be N or MIN:MAX, not 'two'",
        "--nnodes=3:2 | MIN must be at most MAX in --nnodes=MIN:MAX, not 3:2",
        "--nnodes=0:2 | --nnodes must be at least 1, not 0:2",
        "--nnodes=1:2 | --nnodes=MIN:MAX means that nodes come and go while others continue:"
            + " give --elastic, too",
        "--rdzv-endpoint=tcp://a:1 | --rdzv-endpoint can be a URL only if nodes come and go:"
            + " --nnodes=MIN:MAX --elastic",
        "--tail=99999999999 | '--tail': '99999999999' is too large or too small",
        "--standalone=maybe | '--standalone': 'maybe' is neither true nor false",
      })
  void saysInOneLineWhatIsWrong(String option, String message) {
    assertRefused(List.of(message), option, "--", "true");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "PET_NNODES=two | PET_NNODES must be N or MIN:MAX, not 'two'",
        "PET_NNODES=0 | PET_NNODES must be at least 1, not 0",
        "PET_NPROC_PER_NODE=x | PET_NPROC_PER_NODE must be a number or 'cpu', not 'x'",
        "PET_GRACE=soon | Invalid value for PET_GRACE: 'soon': expected a time such as",
        "PET_MASTER_ADDR=a:1 | PET_MASTER_ADDR must be a host without a port, not 'a:1'",
      })
  void namesTheVariableWhoseValueIsWrong(String variable, String message) {
    String[] parts = variable.split("=");
    environment.put(parts[0], parts[1]);
    assertRefused(List.of("tutti run: " + message), "--", "true");
  }

  @Test
  void namesTheOptionThatReplacesAVariable() {
    environment.put("PET_NNODES", "3");
    assertRefused(List.of("tutti run: --nnodes must be at least 1, not 0"), "--nnodes=0", "true");
  }

  private void assertRefused(List<String> message, String... arguments) {
    assertThat(planOf(arguments)).isNull();
    assertThat(terminal.err().lines()).hasSize(1);
    assertThat(terminal.err()).startsWith("tutti run: ").contains(message);
  }

  @Test
  void refusesProcessesAsRanksOfABackendOfThreads() {
    environment.put("TUTTI_BACKEND", "threaded");
    assertRefused(
        List.of("TUTTI_BACKEND=threaded", "threads of one JVM", "use gloo"),
        "--nproc=2",
        "--",
        "true");
    assertThat(planOf("--", "true")).isNotNull();
    environment.put("TUTTI_BACKEND", "threaded-mine");
    assertThat(planOf("--nproc=2", "--", "true")).isNotNull();
  }

  @Test
  void takesAddressesOfIpv6() {
    assertThat(planOf("--nnodes=2", "--rdzv-endpoint=[::1]:1234", "true"))
        .satisfies(
            plan -> {
              assertThat(plan.masterAddress()).isEqualTo("::1");
              assertThat(plan.masterPort()).isEqualTo(1234);
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"fe80::1", "node_1"})
  void takesAnyAddressOfAHost(String host) {
    assertThat(planOf("--master-addr=" + host, "true").masterAddress()).isEqualTo(host);
  }

  @Test
  void needsACommand() {
    assertThat(planOf("--nproc=2")).isNull();
    assertThat(terminal.err()).contains("Missing required parameter: 'COMMAND'");
  }

  @Test
  void warnsOfALoopbackAddressOnlyWhereThereAreSeveralNodes() {
    assertThat(planOf("--nnodes=2", "--master-addr=localhost", "true")).isNotNull();
    assertThat(terminal.err()).contains("warning: localhost is a loopback address");
    terminal.reset();
    assertThat(planOf("--nnodes=2", "--master-addr=192.0.2.1", "true")).isNotNull();
    assertThat(planOf("--nnodes=2", "--master-addr=a.invalid", "true")).isNotNull();
    assertThat(planOf("--nproc=2", "true")).isNotNull();
    assertThat(terminal.err()).doesNotContain("loopback");
  }

  @Test
  void startsJavaFromACacheThatItsFirstRunWrote(@TempDir Path folder) throws IOException {
    Path cache = folder.resolve("app.aot");
    assertThat(planOf("--aot", cache.toString(), "--", "java", "-cp", "a.jar", "A"))
        .satisfies(
            plan -> {
              assertThat(plan.command(0).get(1)).startsWith("-XX:AOTCacheOutput=" + cache + ".");
              assertThat(plan.command(1)).containsExactly("java", "-cp", "a.jar", "A");
            });
    Files.createFile(cache);
    LaunchPlan later = planOf("--aot", cache.toString(), "--", "/x/java", "-cp", "a.jar", "A");
    for (int local = 0; local < 2; local++) {
      assertThat(later.command(local))
          .containsExactly("/x/java", "-XX:AOTCache=" + cache, "-cp", "a.jar", "A");
    }
  }

  @Test
  void refusesACacheForOtherProgramsAndInNoFolder(@TempDir Path folder) {
    planOf("--aot", folder.resolve("a").toString(), "python3", "train.py");
    assertThat(terminal.err())
        .contains("--aot works only for commands that start with java, not with python3");
    planOf("--aot", folder.resolve("b/c").toString(), "java", "A");
    assertThat(terminal.err()).contains(": no such folder");
    planOf("--aot", folder.toString(), "java", "A");
    assertThat(terminal.err()).contains("--aot must be a file, but " + folder + " is a folder");
  }
}
