package dev.tutti.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.TestTerminal;
import dev.tutti.runtime.settings.SettingNames;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DoctorCommandTest {
  private final TestTerminal terminal = new TestTerminal(10_000);
  private final Map<String, String> environment = new HashMap<>();

  private int doctor(String... options) {
    String[] all = new String[options.length + 1];
    all[0] = "doctor";
    System.arraycopy(options, 0, all, 1, options.length);
    int code = terminal.tutti(environment, all);
    assertThat(terminal.err()).isEmpty();
    return code;
  }

  private List<String> lines() {
    return terminal.out().lines().map(line -> line.trim().replaceAll(" +", " ")).toList();
  }

  /** Asserts that doctor finds something broken, and names it at the end. */
  private void assertBroken(String names, String... lines) {
    assertThat(doctor("--all")).isEqualTo(1);
    assertThat(lines()).endsWith("broken: " + names);
    for (String line : lines) {
      assertThat(lines()).anyMatch(found -> (found + " ").contains(line));
    }
  }

  @Test
  void tellsWhatIsHere() {
    assertThat(doctor("--all")).isZero();
    String version = Runtime.version().toString();
    assertThat(lines())
        .contains(
            "tutti",
            "ok version development",
            "java",
            "machine",
            "network",
            "backends",
            "stores",
            "launch",
            "settings")
        .anyMatch(line -> line.contains(" version " + version))
        .anyMatch(line -> line.startsWith("ok cores " + Runtime.getRuntime().availableProcessors()))
        .anyMatch(line -> line.startsWith("ok lo ") && line.contains("127.0.0.1"))
        .anyMatch(line -> line.startsWith("ok gloo usable"))
        .anyMatch(line -> line.contains("for cpu and cuda; would listen at "))
        .anyMatch(line -> line.contains("for cpu; only if named; from "))
        .anyMatch(line -> line.startsWith("ok tcp usable from "))
        .anyMatch(line -> line.matches("(ok cuda usable|note cuda cannot run here)( .*)?"))
        .endsWith("nothing essential is broken");
  }

  @Test
  void tellsWhatMattersInAFewLines() {
    environment.put("TUTTI_CLOSE_TIMEOUT", "3s");
    environment.put("TUTTI_BACKEND", "glo");
    assertThat(doctor()).isEqualTo(1);
    assertThat(lines())
        .hasSizeLessThan(25)
        .contains(
            "ok tutti development",
            "BROKEN glo chosen but not usable TUTTI_BACKEND=glo; did you mean 'gloo'?")
        .anyMatch(line -> line.startsWith("ok backends ") && line.contains("gloo"))
        .anyMatch(line -> line.matches("ok settings \\d+, set: .*TUTTI_CLOSE_TIMEOUT=3s.*"))
        .noneMatch(line -> line.contains("TUTTI_X_GLOO_SPIN"))
        .endsWith("broken: glo");
  }

  @Test
  void sumsUpInterfacesWithoutTheHostName() {
    assertThat(
            DoctorSummary.of(
                List.of(
                    CheckResult.ok("network", "eth0", "10.0.0.2", "up"),
                    CheckResult.ok("network", "lo", "127.0.0.1", "up"),
                    CheckResult.ok("network", "host name", "node1", "10.0.0.2"))))
        .containsExactly(CheckResult.ok("", "network", "eth0, lo", ""));
  }

  @Test
  void breaksLinesAtTheEdgeOfTheTerminal() {
    Wrapper wrapper = new Wrapper(40);
    assertThat(wrapper.wrap("one two three four five six seven", 10))
        .isEqualTo("one two three four five six\n          seven");
    assertThat(wrapper.wrap("x".repeat(50) + " y", 10)).isEqualTo("x".repeat(50) + "\n          y");
    assertThat(wrapper.wrap("", 10)).isEmpty();
  }

  @Test
  void writesTimesAsPeopleDo() {
    assertThat(doctor("--all")).isZero();
    assertThat(lines())
        .anyMatch(line -> line.startsWith("ok TUTTI_TIMEOUT 30m"))
        .anyMatch(line -> line.startsWith("ok TUTTI_CLOSE_TIMEOUT 5s"))
        .noneMatch(line -> line.matches("ok TUTTI_\\w+ \\d+000ms.*"));
  }

  @Test
  void tellsWhereASettingComesFrom() {
    environment.put("TUTTI_CLOSE_TIMEOUT", "3s");
    assertThat(doctor("--all")).isZero();
    assertThat(lines())
        .contains(
            "ok TUTTI_CLOSE_TIMEOUT 3s from environment: longest time that close waits for pending"
                + " operations, for other ranks to read what this rank sent and, where it serves"
                + " the store, for them to leave; a bare number is seconds")
        .anyMatch(line -> line.startsWith("ok TUTTI_STORE tcp scheme of the store that "))
        .anyMatch(line -> line.startsWith("ok TUTTI_X_GLOO_SPIN "))
        .noneMatch(line -> line.contains("from default"));
  }

  @Test
  void tellsThatATokenIsSetButNotWhich() {
    assertThat(doctor("--all")).isZero();
    assertThat(lines()).anyMatch(line -> line.startsWith("ok TUTTI_TOKEN (not set)"));
    environment.put("TUTTI_TOKEN", "tell-nobody-else");
    environment.put("TUTTI_TOKENS", "tell-nobody-else");
    environment.put("TUTTI_JOB_SECRET", "tell-nobody-else");
    assertThat(doctor("--all")).isZero();
    assertThat(doctor("--format=json")).isZero();
    assertThat(lines())
        .anyMatch(line -> line.startsWith("ok TUTTI_TOKEN (set, not shown)"))
        .anyMatch(line -> line.startsWith("note TUTTI_TOKENS (not shown)"))
        .noneMatch(line -> line.contains("tell-nobody-else"));
  }

  @Test
  void failsOnASettingThatCannotBeRead() {
    environment.put("TUTTI_TIMEOUT", "soon");
    assertBroken("TUTTI_TIMEOUT", "BROKEN TUTTI_TIMEOUT soon");
  }

  @Test
  void namesVariablesThatNobodyReads() {
    environment.put("TUTTI_TIME_OUT", "30s");
    environment.put("tutti_backend", "gloo");
    environment.put("TUTTI_COFFEE", "1");
    environment.put("TUTTI_CLASS_PATH", "");
    assertThat(doctor("--format=json")).isZero();
    assertThat(terminal.out().lines())
        .anyMatch(
            line ->
                line.contains(
                        "\"name\":\"TUTTI_TIME_OUT\",\"status\":\"note\",\"value\":\"(not shown)\"")
                    && line.contains("did you mean TUTTI_TIMEOUT?"))
        .anyMatch(line -> line.contains("tutti_backend") && line.contains("TUTTI_BACKEND?"))
        .anyMatch(line -> line.contains("TUTTI_COFFEE") && line.contains("so it has no effect"))
        .noneMatch(line -> line.contains("TUTTI_CLASS_PATH"));
  }

  @Test
  void failsOnTimesAndNumbersThatMakeNoSense() {
    environment.put("TUTTI_TIMEOUT", "0");
    environment.put("TUTTI_FLIGHT_RECORD", "-1");
    environment.put("TUTTI_GLOO_SHARED_BYTES", "lots");
    environment.put("TUTTI_X_GLOO_TWO_LEVEL", "maybe");
    assertBroken(
        "TUTTI_FLIGHT_RECORD, TUTTI_GLOO_SHARED_BYTES, TUTTI_TIMEOUT, TUTTI_X_GLOO_TWO_LEVEL",
        "BROKEN TUTTI_FLIGHT_RECORD -1",
        "BROKEN TUTTI_GLOO_SHARED_BYTES lots",
        "BROKEN TUTTI_X_GLOO_TWO_LEVEL maybe",
        "BROKEN TUTTI_TIMEOUT 0");
    assertThat(lines())
        .anyMatch(line -> line.contains("expected a time longer than 0"))
        .anyMatch(line -> line.contains("expected a whole number from 1"));
  }

  @Test
  void listsWhatRanksKnowAsSettingsOfTutti() {
    assertThat(doctor("--format=json")).isZero();
    assertThat(
            terminal
                .out()
                .lines()
                .filter(line -> line.startsWith("{\"section\":\"settings\",\"name\":\"TUTTI_"))
                .map(line -> line.split("\"", -1)[7]))
        .containsExactlyInAnyOrderElementsOf(
            SettingNames.OF_TUTTI.stream()
                .filter(name -> !name.equals("TUTTI_CLASS_PATH"))
                .toList());
  }

  @Test
  void failsOnAPlaceToMeetThatCannotBe() {
    environment.put("TUTTI_STORE", "redis");
    environment.put("TUTTI_INIT_METHOD", "tpc://host:29500");
    environment.put("MASTER_ADDR", "host:29500");
    environment.put("MASTER_PORT", "99999");
    environment.put("RANK", "5");
    environment.put("WORLD_SIZE", "2");
    String there = "; the available schemes are aeron, aeron-cluster, file, tcp; ";
    assertBroken(
        "MASTER_ADDR, MASTER_PORT, RANK, TUTTI_INIT_METHOD, TUTTI_STORE",
        "no store on the class path has the scheme 'redis'" + there + "unset it for tcp",
        "no store on the class path has the scheme 'tpc'" + there + "did you mean tcp?",
        "BROKEN MASTER_ADDR host:29500 must be a host without a port; the port is set in"
            + " MASTER_PORT",
        "BROKEN MASTER_PORT 99999 must be a number from 1 to 65535, the same for all ranks",
        "BROKEN RANK 5 must be from 0 to 1, because WORLD_SIZE is 2");
  }

  @Test
  void failsOnNumbersOfRanksThatAreNone() {
    environment.put("MASTER_PORT", "0");
    environment.put("RANK", "-1");
    environment.put("WORLD_SIZE", "two");
    assertBroken(
        "RANK, WORLD_SIZE",
        "BROKEN RANK -1 must be a number from 0 to WORLD_SIZE - 1",
        "BROKEN WORLD_SIZE two must be the number of ranks, at least 1");
    environment.put("RANK", "1");
    environment.put("WORLD_SIZE", "2");
    assertBroken(
        "MASTER_PORT",
        "BROKEN MASTER_PORT 0 must not be 0: the other ranks cannot know which port is chosen");
  }

  @Test
  void acceptsWhatALauncherSets() {
    environment.put("TUTTI_STORE", "aeron");
    environment.put("TUTTI_INIT_METHOD", "env://?rank=1");
    environment.put("MASTER_ADDR", "::1");
    environment.put("MASTER_PORT", "65535");
    environment.put("RANK", "1");
    environment.put("WORLD_SIZE", "2");
    assertThat(doctor("--all")).isZero();
    assertThat(lines()).anyMatch(line -> line.startsWith("ok MASTER_ADDR ::1 from environment"));
  }

  @Test
  void tellsWhichLauncherStartedIt() {
    assertThat(doctor("--all")).isZero();
    assertThat(lines())
        .anyMatch(
            line -> line.startsWith("ok launcher none looked for the variables of tutti run"));
    terminal.reset();
    environment.put("OMPI_COMM_WORLD_RANK", "1");
    environment.put("OMPI_COMM_WORLD_SIZE", "4");
    environment.put("OMPI_COMM_WORLD_LOCAL_SIZE", "4");
    assertThat(doctor()).isZero();
    assertThat(lines()).contains("ok launch Open MPI, rank 1 of 4");
    environment.put("PMI_RANK", "2");
    environment.put("PMI_SIZE", "4");
    assertBroken(
        "launcher", "Open MPI and PMI disagree on which rank this is: OMPI_COMM_WORLD_RANK=1,");
    environment.put("TUTTI_INIT_METHOD", "tcp://127.0.0.1:29500");
    terminal.reset();
    assertThat(doctor("--all")).isZero();
    assertThat(lines()).anyMatch(line -> line.startsWith("ok launcher not used ranks meet at tcp"));
  }

  @Test
  void tellsThatOtherHostsCannotReachALoopbackAddress() {
    environment.put("MASTER_ADDR", "127.0.0.1");
    assertThat(doctor("--all")).isZero();
    assertThat(lines())
        .anyMatch(
            line ->
                line.contains(
                    "; would listen at 127.0.0.1 on interface lo, which only ranks of this host can"
                        + " reach: on the route to MASTER_ADDR=127.0.0.1 "))
        .anyMatch(
            line ->
                line.startsWith("ok lo ")
                    && line.endsWith(" up, loopback: reachable only from this host"));
  }

  @Test
  void tellsWhyABackendIsNotUsableAndFailsIfNoneIs() {
    environment.put("GLOO_SOCKET_IFNAME", "nope0");
    assertBroken("default", "note gloo cannot run here");
    assertThat(lines())
        .anyMatch(line -> line.contains(" GLOO_SOCKET_IFNAME='nope0': nope0 does not exist;"));
  }

  @Test
  void failsIfTheChosenBackendIsNotThere() {
    environment.put("TUTTI_BACKEND", "cpu:gloo,cuda:nccl");
    assertBroken("nccl", "BROKEN nccl chosen but not usable TUTTI_BACKEND=cpu:gloo,cuda:nccl");
  }

  @Test
  void writesOneJsonObjectALine() {
    assertThat(doctor("--format=json")).isZero();
    assertThat(terminal.out().lines())
        .allMatch(
            line ->
                line.matches(
                    "\\{\"section\":\"[a-z ]+\",\"name\":\".+\",\"status\":\"(ok|note|broken)\","
                        + "\"value\":\".*\",\"detail\":\".*\"}"))
        .anyMatch(
            line ->
                line.startsWith(
                    "{\"section\":\"backends\",\"name\":\"gloo\",\"status\":\"ok\","
                        + "\"value\":\"usable\",\"detail\":\"for cpu and cuda; would listen at "));
  }

  @ParameterizedTest
  @CsvSource({
    ", 'ok played usable played:0 with 1 GiB, no links; from '",
    "no driver, 'note played cannot run here no driver; from '"
  })
  void tellsWhatStreamBlocksFind(String reason, String start, @TempDir Path directory)
      throws IOException {
    PlayedStreamBlocks.reason = Optional.ofNullable(reason);
    assertThat(
            doctorWith(
                directory,
                "dev.tutti.spi.StreamBlockProvider",
                "dev.tutti.cli.doctor.PlayedStreamBlocks"))
        .isZero();
    assertThat(lines())
        .anyMatch(line -> line.startsWith(start))
        .endsWith("nothing essential is broken");
  }

  @Test
  void namesAProviderThatCannotBeLoaded(@TempDir Path directory) throws IOException {
    assertThat(doctorWith(directory, "dev.tutti.spi.BackendProvider", "com.example.Gone"))
        .isEqualTo(1);
    assertThat(lines())
        .anyMatch(line -> line.startsWith("BROKEN ? cannot be loaded "))
        .anyMatch(line -> line.contains("Provider com.example.Gone not found"))
        .anyMatch(line -> line.startsWith("ok gloo usable"));
  }

  @Test
  void tellsTheRestWhereABackendCannotTellWhatItServes(@TempDir Path directory) throws IOException {
    assertThat(doctorWith(directory, "dev.tutti.gloo.spi.GlooDeviceProvider", "com.example.Gone"))
        .isEqualTo(1);
    assertThat(lines())
        .anyMatch(line -> line.startsWith("BROKEN gloo cannot list its device types "))
        .anyMatch(line -> line.startsWith("BROKEN gloo settings unknown "))
        .anyMatch(line -> line.contains("Provider com.example.Gone not found"))
        .anyMatch(line -> line.startsWith("ok tcp usable from "))
        .anyMatch(line -> line.startsWith("ok TUTTI_STORE tcp scheme of the store that "))
        .endsWith("broken: gloo, default, gloo settings");
  }

  /** Runs doctor with one more provider on the class path. */
  private int doctorWith(Path directory, String service, String provider) throws IOException {
    Path services = Files.createDirectories(directory.resolve("META-INF/services"));
    Files.writeString(services.resolve(service), provider + "\n");
    URL[] urls = {new File(directory.toString()).toURI().toURL()};
    ClassLoader before = Thread.currentThread().getContextClassLoader();
    try (URLClassLoader loader = new URLClassLoader(urls, before)) {
      Thread.currentThread().setContextClassLoader(loader);
      return doctor("--all");
    } finally {
      Thread.currentThread().setContextClassLoader(before);
    }
  }
}
