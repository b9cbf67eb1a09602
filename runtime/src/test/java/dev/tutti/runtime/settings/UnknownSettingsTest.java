package dev.tutti.runtime.settings;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.ProcessGroup;
import dev.tutti.runtime.group.ScriptedProvider;
import dev.tutti.runtime.group.WarningCapture;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Tests that a process warns about settings that nothing reads; each test uses its own names. */
@Timeout(300)
@Isolated("sets system properties, of which the process warns once")
class UnknownSettingsTest {
  private static List<String> warningsOf(String... settings) {
    try (WarningCapture warnings = new WarningCapture(UnknownSettings.class);
        ProcessGroup group = new ScriptedProvider().alone(settings)) {
      group.barrier();
      return warnings.messages();
    }
  }

  @Test
  void aProcessWarnsOnceOfAMisspeltName() {
    assertThat(warningsOf("TUTTI_TIMOUT", "90s"))
        .containsExactly(
            "TUTTI_TIMOUT is set, but there is no such setting; did you mean TUTTI_TIMEOUT?");
    assertThat(warningsOf("TUTTI_TIMOUT", "90s")).isEmpty();
  }

  @Test
  void allNamesInTheWayOfSettingsAreLookedAt() {
    assertThat(warningsOf("tutti_backend", "gloo", "TUTTI_COFFEE", "black", "OTHER_TIMEOUT", "1"))
        .containsExactly(
            "TUTTI_COFFEE is set, but there is no such setting, or the module that reads it is not"
                + " on the class path",
            "tutti_backend is set, but there is no such setting; did you mean TUTTI_BACKEND?");
  }

  @Test
  void settingsOfPartsThatAreNotOnTheClassPathAreKnown() {
    assertThat(
            warningsOf(
                "TUTTI_NCCL_LIBRARY",
                "libnccl.so",
                "TUTTI_X_AERON_SPIN",
                "0",
                "TUTTI_CLASS_PATH",
                "a.jar"))
        .isEmpty();
  }

  @Test
  void aPropertyInPlaceOfAVariableIsNamed() {
    System.setProperty("tutti.flight.record", "10");
    System.setProperty("tutti.something", "1");
    List<String> warnings;
    try {
      warnings = warningsOf();
    } finally {
      System.clearProperty("tutti.flight.record");
      System.clearProperty("tutti.something");
    }
    assertThat(warnings)
        .containsExactly(
            "the system property tutti.flight.record is not read; set TUTTI_FLIGHT_RECORD in the"
                + " environment");
  }
}
