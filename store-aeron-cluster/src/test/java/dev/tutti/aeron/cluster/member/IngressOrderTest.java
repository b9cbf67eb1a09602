package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.driver.Channels;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests which packets continue their streams. */
class IngressOrderTest {
  private static final int SESSION = 5;
  private static final int TERM_BYTES = Channels.TERM_BYTES;

  private final IngressOrder order = new IngressOrder(2);

  private void pass(int term, int offset, int bytes) {
    assertThat(order.isNext(SESSION, term, offset, bytes)).isTrue();
    order.passed(SESSION, bytes);
  }

  @Test
  void nothingPassesBeforeTheFirstStatusMessage() {
    assertThat(order.isNext(SESSION, 1, 0, 64)).isFalse();
    order.passed(SESSION, 64);
    order.confirmed(SESSION + 1, 1, 0);
    assertThat(order.isNext(SESSION, 1, 0, 64)).isFalse();
  }

  @ParameterizedTest
  @ValueSource(ints = {7, Integer.MAX_VALUE, -1})
  void onlyTheNextPacketPassesAlsoInTheNextTerm(int term) {
    order.confirmed(SESSION, term, TERM_BYTES - 1024);
    pass(term, TERM_BYTES - 1024, 64);
    for (int offset : new int[] {0, 1024, 992, 928, 32}) {
      assertThat(order.isNext(SESSION, term, TERM_BYTES - offset, 64)).as("%d", offset).isFalse();
    }
    assertThat(order.isNext(SESSION, term + 1, TERM_BYTES - 960, 64)).isFalse();
    pass(term, TERM_BYTES - 960, 960);
    pass(term + 1, 0, 1024);
    assertThat(order.isNext(SESSION, term, TERM_BYTES - 960, 64)).isFalse();
    assertThat(order.isNext(SESSION, term + 1, 0, 64)).isFalse();
    pass(term + 1, 1024, 64);
  }

  @Test
  void whatAeronIgnoresDoesNotPass() {
    order.confirmed(SESSION, 1, 0);
    pass(1, 0, TERM_BYTES / 2 - 64);
    assertThat(order.isNext(SESSION, 1, TERM_BYTES / 2 - 64, 96)).isFalse();
    order.confirmed(SESSION, 1, 32);
    pass(1, TERM_BYTES / 2 - 64, 96);
  }

  @Test
  void aStreamThatBeginsAnewContinuesThere() {
    order.confirmed(SESSION, 1, 0);
    pass(1, 0, 64);
    order.confirmed(SESSION, 1, 64);
    pass(1, 64, 64);
    order.confirmed(SESSION, 3, 128);
    assertThat(order.isNext(SESSION, 1, 128, 64)).isFalse();
    pass(3, 128, 64);
  }

  @Test
  void aStatusMessageDoesNotLetAPacketPassAgain() {
    order.confirmed(SESSION, 1, 0);
    pass(1, 0, 640);
    order.confirmed(SESSION, 1, 320);
    assertThat(order.isNext(SESSION, 1, 320, 64)).isFalse();
    pass(1, 640, 64);
  }

  @Test
  void streamsWithoutStatusMessagesAreForgotten() {
    order.confirmed(SESSION, 1, 0);
    order.confirmed(SESSION + 1, 1, 0);
    order.confirmed(SESSION, 1, 0);
    order.confirmed(SESSION + 2, 1, 0);
    assertThat(order.isNext(SESSION, 1, 0, 64)).isTrue();
    assertThat(order.isNext(SESSION + 1, 1, 0, 64)).isFalse();
    assertThat(order.isNext(SESSION + 2, 1, 0, 64)).isTrue();
  }
}
