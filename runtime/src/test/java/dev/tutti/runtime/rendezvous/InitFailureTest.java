package dev.tutti.runtime.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.BackendException;
import dev.tutti.RendezvousException;
import dev.tutti.StoreConnectionException;
import dev.tutti.spi.PeerLateException;
import dev.tutti.spi.PeerLostException;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class InitFailureTest {
  private static final InitFailure FAILURE =
      new InitFailure(
          new Rendezvous.Meeting(
              new HashStore(), 2, 3, false, false, 0, "tcp://10.0.0.1:29500", "rank 0"),
          Duration.ofSeconds(8));

  @Test
  void aRankThatWentIsNamedAndNotTheOneThatServesTheStore() {
    RendezvousException thrown =
        rendezvous(new PeerLostException(1, "rank 2 of group 0: rank 1 closed it", null));
    assertThat(thrown)
        .hasMessage(
            "rank 2/3 cannot join the other ranks, which meet at tcp://10.0.0.1:29500: rank 2 of"
                + " group 0: rank 1 closed it. Rank 1 had joined: check its last output");
    assertThat(thrown.missingRanks()).containsExactly(1);
  }

  @Test
  void ranksThatDidNotComeAreNamedWithWhatToCheck() {
    RendezvousException thrown =
        rendezvous(new BackendException("x", new PeerLateException(List.of(0, 1), "did not come")));
    assertThat(thrown.missingRanks()).containsExactly(0, 1);
    assertThat(thrown)
        .hasMessageEndingWith(
            "that they can reach each other, and that 8 s (TUTTI_TIMEOUT) is long enough");
  }

  @Test
  void aStoreThatIsNotReachedIsToBeCheckedWhereItIsServed() {
    RendezvousException thrown = rendezvous(new StoreConnectionException("refused"));
    assertThat(thrown.missingRanks()).isEmpty();
    assertThat(thrown)
        .hasMessageContaining(". Check that rank 0, which serves the store, is running");
  }

  @Test
  void whatThisRankCannotDoItselfStaysAsItIs() {
    RuntimeException own = new BackendException("no device");
    assertThat(FAILURE.of(own, InitFailure.Missing.NONE)).isSameAs(own);
  }

  private static RendezvousException rendezvous(RuntimeException cause) {
    return (RendezvousException) FAILURE.of(cause, InitFailure.Missing.NONE);
  }
}
