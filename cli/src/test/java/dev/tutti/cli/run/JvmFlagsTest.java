package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JvmFlagsTest {
  private static final String BOTH = "-XX:+UseSerialGC -XX:CICompilerCount=2";

  private static JvmFlags of(String choice, int ranks, int cores, String... command) {
    return JvmFlags.choose(choice, ranks, cores, List.of(command), Map.of());
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1, false",
    "1, 64, false",
    "2, 2, true",
    "2, 3, true",
    "2, 4, false",
    "3, 4, true",
    "32, 64, false",
    "33, 64, true",
    "64, 64, true",
    "128, 64, true",
    "2, 1, true"
  })
  void givesFlagsWhereARankHasFewerThanTwoCores(int ranks, int cores, boolean gives) {
    JvmFlags flags = of("auto", ranks, cores, "/opt/jdk/bin/java", "-cp", "a.jar", "Main");
    assertThat(flags.command())
        .containsExactlyElementsOf(
            gives
                ? List.of(
                    "/opt/jdk/bin/java",
                    "-XX:+UseSerialGC",
                    "-XX:CICompilerCount=2",
                    "-cp",
                    "a.jar",
                    "Main")
                : List.of("/opt/jdk/bin/java", "-cp", "a.jar", "Main"));
    assertThat(flags.note().isEmpty()).isNotEqualTo(gives);
  }

  @Test
  void anAeronStoreGetsTheFlagThatItNeeds() {
    Map<String, String> aeron = Map.of("TUTTI_STORE", "aeron");
    String flag = "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED";
    JvmFlags flags = JvmFlags.choose("auto", 1, 64, List.of("java", "Main"), aeron);
    assertThat(flags.command()).containsExactly("java", flag, "Main");
    assertThat(flags.note()).isEqualTo("Aeron store: java gets " + flag);
    assertThat(JvmFlags.choose("auto", 4, 4, List.of("java", "Main"), aeron).note())
        .isEqualTo("4 ranks on 4 cores: java gets " + flag + " " + BOTH);
    List<String> given = List.of("java", "--add-exports", "java.base/jdk.internal.misc=a", "Main");
    assertThat(JvmFlags.choose("auto", 1, 64, given, aeron).command()).isEqualTo(given);
    assertThat(JvmFlags.choose("none", 1, 64, List.of("java", "Main"), aeron).note()).isEmpty();
  }

  @Test
  void saysWhichAndWhy() {
    assertThat(of("auto", 4, 4, "java", "Main").note())
        .isEqualTo("4 ranks on 4 cores: java gets " + BOTH);
    assertThat(of("auto", 2, 1, "java", "Main").note())
        .isEqualTo("2 ranks on 1 core: java gets " + BOTH);
  }

  @ParameterizedTest
  @CsvSource({
    "-XX:+UseG1GC, -XX:CICompilerCount=2",
    "-XX:+UseSerialGC, -XX:CICompilerCount=2",
    "-XX:-UseParallelGC, -XX:CICompilerCount=2",
    "-XX:+AggressiveHeap, -XX:CICompilerCount=2",
    "-XX:CICompilerCount=4, -XX:+UseSerialGC",
    "-XX:+UseNUMA, -XX:+UseSerialGC -XX:CICompilerCount=2"
  })
  void leavesAloneWhatTheUserSet(String theirs, String added) {
    String expected = "4 ranks on 4 cores: java gets " + added;
    assertThat(of("auto", 4, 4, "java", theirs, "Main").note()).isEqualTo(expected);
    for (String variable : List.of("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")) {
      Map<String, String> environment = Map.of(variable, "-ea " + theirs + " -Xmx1g");
      JvmFlags flags = JvmFlags.choose("auto", 4, 4, List.of("java", "Main"), environment);
      assertThat(flags.note()).isEqualTo(expected);
      assertThat(flags.environment()).isEqualTo(environment);
    }
  }

  @Test
  void addsNothingWhereTheUserSetAll() {
    JvmFlags flags = of("auto", 4, 4, "java", "-XX:CICompilerCount=3", "-XX:+UseZGC", "Main");
    assertThat(flags.command()).hasSize(4);
    assertThat(flags.note()).isEmpty();
  }

  @Test
  void readsFilesOfArguments(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("flags"), "-ea\n-XX:+UseParallelGC\n");
    for (String given : List.of("@", "-XX:Flags=", "-XX:VMOptionsFile=")) {
      assertThat(of("auto", 4, 4, "java", given + file, "Main").command())
          .containsExactly("java", "-XX:CICompilerCount=2", given + file, "Main");
    }
    assertThat(of("auto", 4, 4, "java", "Main", "@nobody\0").command()).hasSize(5);
  }

  @Test
  void leavesOtherProgramsAlone() {
    JvmFlags flags = of("auto", 4, 4, "python3", "java");
    assertThat(flags.command()).containsExactly("python3", "java");
    assertThat(flags.environment()).isEmpty();
    assertThat(flags.note()).isEmpty();
  }

  @Test
  void givesWhatTheUserChose() {
    assertThat(of("none", 4, 4, "java", "Main").command()).containsExactly("java", "Main");
    assertThat(of("", 4, 4, "java", "Main").command()).containsExactly("java", "Main");
    JvmFlags chosen = of("-Xint  -ea", 1, 4, "java", "-XX:+UseG1GC", "Main");
    assertThat(chosen.command()).containsExactly("java", "-Xint", "-ea", "-XX:+UseG1GC", "Main");
    assertThat(chosen.note()).isEmpty();
  }

  @Test
  void givesToOtherProgramsByTheEnvironmentWhatTheUserChose() {
    List<String> script = List.of("./train.sh");
    assertThat(JvmFlags.choose("-Xint", 4, 4, script, Map.of()).environment())
        .isEqualTo(Map.of("JDK_JAVA_OPTIONS", "-Xint"));
    Map<String, String> theirs = Map.of("JDK_JAVA_OPTIONS", "-ea");
    JvmFlags flags = JvmFlags.choose("-Xint", 4, 4, script, theirs);
    assertThat(flags.environment()).isEqualTo(Map.of("JDK_JAVA_OPTIONS", "-Xint -ea"));
    assertThat(flags.command()).isEqualTo(script);
  }
}
