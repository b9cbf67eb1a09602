package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ProcessMarkTest {
  @Test
  void marksTellProcessesApart() {
    assertThat(ProcessMark.isAlive(ProcessMark.own())).isTrue();
    assertThat(ProcessMark.pid(ProcessMark.own())).isEqualTo(ProcessHandle.current().pid());
    assertThat(ProcessMark.isAlive(ProcessMark.own() + (1L << 22))).isFalse();
    assertThat(ProcessMark.own()).isPositive();
  }
}
