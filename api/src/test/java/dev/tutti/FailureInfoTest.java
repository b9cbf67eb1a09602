package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import org.junit.jupiter.api.Test;

final class FailureInfoTest {
  @Test
  void knowsNothingMoreThanItIsTold() {
    FailureInfo info = FailureInfo.builder("0", 1, 4).build();
    assertThat(info.opType()).isEqualTo(OpType.UNKNOWN);
    assertThat(info.sequenceNumber()).isZero();
    assertThat(info.peer()).isEmpty();
    assertThat(info.failedRank()).isEmpty();
    assertThat(info.describe()).isEqualTo("rank 1/4, group 0, after 0 ms");
  }

  @Test
  void travelsWithItsException() throws Exception {
    FailureInfo info =
        FailureInfo.builder("0", 1, 4)
            .operation(OpType.SEND, 3)
            .peer(2)
            .failedRank(0)
            .elapsed(Duration.ofMillis(7))
            .build();
    assertThat(info.peer()).hasValue(2);
    assertThat(info.failedRank()).hasValue(0);
    assertThat(info.describe())
        .isEqualTo("rank 1/4, group 0, send #3, peer rank 2, first failing rank 0, after 7 ms");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(info);
    Object read = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    assertThat(read).isEqualTo(info).hasSameHashCodeAs(info);
    assertThat(read).isNotEqualTo(FailureInfo.builder("0", 1, 4).build());
  }
}
