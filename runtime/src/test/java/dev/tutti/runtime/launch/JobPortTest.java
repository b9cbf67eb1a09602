package dev.tutti.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

class JobPortTest {
  @Test
  void jobsThatFollowEachOtherHaveDifferentPorts() {
    Set<String> ports = new HashSet<>();
    for (int job = 1_000_000; job < 1_000_100; job++) {
      ports.add(JobPort.of(job + ".0"));
    }
    assertThat(ports)
        .hasSizeGreaterThan(95)
        .allSatisfy(port -> assertThat(Integer.parseInt(port)).isBetween(12_288, 28_671));
  }
}
