package dev.tutti.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cli.doctor.CheckResult.Status;
import java.net.UnknownHostException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostCheckTest {
  @ParameterizedTest
  @CsvSource({
    "25+36, true, NOTE",
    "25.0.1+8, true, NOTE",
    "25.0.2+10-LTS, true, NOTE",
    "25.0.2+10-LTS, false, OK",
    "25.0.3+9-LTS, true, OK",
    "25.1+1, true, OK",
    "26+30, true, OK"
  })
  void warnsOfVersionsWhoseG1MovesPinnedArrays(String version, boolean g1, Status status) {
    CheckResult finding =
        HostCheck.version(Runtime.Version.parse(version), g1, "Vendor, /opt/java");
    assertThat(finding.status()).isEqualTo(status);
    assertThat(finding.value()).isEqualTo(version);
    assertThat(finding.detail()).endsWith("Vendor, /opt/java");
    assertThat(finding.detail().contains("JDK-8377811")).isEqualTo(status == Status.NOTE);
  }

  @Test
  void ratesTheVersionThatRuns() {
    assertThat(HostCheck.run().getFirst().value()).isEqualTo(Runtime.version().toString());
  }

  @Test
  void saysWhyANameDoesNotResolveInTheWordsOfTheCause() {
    UnknownHostException plain = new UnknownHostException("vm: Name or service not known");
    assertThat(HostCheck.reason(plain)).isEqualTo("vm: Name or service not known");
    UnknownHostException wrapped = new UnknownHostException("Object@7fc2vm: not known");
    wrapped.initCause(plain);
    assertThat(HostCheck.reason(wrapped)).isEqualTo("vm: Name or service not known");
  }
}
