package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that a process warns of settings that nobody reads; each test has names of its own. */
@Timeout(60)
class UnknownSettingsTest {
  private final WarningCapture warnings = new WarningCapture(UnknownSettings.class);

  @AfterEach
  void listenNoMore() {
    warnings.close();
  }

  private static void join(String... settings) {
    try (ProcessGroup group = new ScriptedProvider().alone(settings)) {
      group.barrier();
    }
  }

  @Test
  void aProcessWarnsOnceOfAMisspeltName() {
    join("TUTTI_TIMOUT", "90s");
    join("TUTTI_TIMOUT", "90s");
    assertThat(warnings.messages())
        .containsExactly(
            "TUTTI_TIMOUT is set, but there is no such setting; did you mean TUTTI_TIMEOUT?");
  }

  @Test
  void allNamesInTheWayOfSettingsAreLookedAt() {
    join("tutti_backend", "gloo", "TUTTI_COFFEE", "black", "OTHER_TIMEOUT", "1");
    assertThat(warnings.messages())
        .containsExactly(
            "TUTTI_COFFEE is set, but there is no such setting, or what reads it is not on the"
                + " class path",
            "tutti_backend is set, but there is no such setting; did you mean TUTTI_BACKEND?");
  }

  @Test
  void settingsOfPartsThatAreNotOnTheClassPathAreKnown() {
    join("TUTTI_NCCL_LIBRARY", "libnccl.so", "TUTTI_AERON_SPIN", "0", "TUTTI_CLASS_PATH", "a.jar");
    assertThat(warnings.messages()).isEmpty();
  }

  @Test
  void aPropertyInPlaceOfAVariableIsNamed() {
    System.setProperty("tutti.flight.record", "10");
    System.setProperty("tutti.something", "1");
    try {
      join();
    } finally {
      System.clearProperty("tutti.flight.record");
      System.clearProperty("tutti.something");
    }
    assertThat(warnings.messages())
        .containsExactly(
            "the system property tutti.flight.record is not read; set TUTTI_FLIGHT_RECORD in the"
                + " environment");
  }
}
