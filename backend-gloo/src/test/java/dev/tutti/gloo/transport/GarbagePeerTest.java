package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.GroupOptions;
import dev.tutti.PeerFailedException;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Runs a group of two ranks in which the other rank sends invalid messages, on the sockets of this
 * machine; {@link SimulatedGarbageTest} sends more kinds.
 */
@Timeout(300)
class GarbagePeerTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(200);

  /** What the peer sends. */
  enum Garbage {
    TEXT("sent an invalid header") {
      @Override
      byte[] bytes() {
        return "GET /metrics HTTP/1.1\r\nHost: example.org\r\nAccept: text/plain, */*\r\n\r\n"
            .getBytes(StandardCharsets.US_ASCII);
      }
    },
    NOISE("sent an invalid header") {
      @Override
      byte[] bytes() {
        byte[] bytes = new byte[100_000];
        new SplittableRandom(1).nextBytes(bytes);
        return bytes;
      }
    },
    OVERSIZED("1099511627776 bytes on slot 0x0, for which no receive is posted") {
      @Override
      byte[] bytes() {
        return RawPeer.words(48 + (1L << 40), Header.SEND_UNBOUND_BUFFER, 0, 0, 1L << 40, 0);
      }
    },
    NEGATIVE("-48 bytes on slot 0x0") {
      @Override
      byte[] bytes() {
        return RawPeer.words(0, Header.SEND_UNBOUND_BUFFER, 0, 0, -48, 0);
      }
    },
    TRUNCATED("closed the connection") {
      @Override
      byte[] bytes() {
        return new byte[] {48, 0, 0, 0, 0, 0, 0, 0, 2, 0};
      }
    };

    final String text;

    Garbage(String text) {
      this.text = text;
    }

    abstract byte[] bytes();
  }

  /** Starts a group of two with a peer that is not a Tutti rank. */
  static ProcessGroup group(RawPeer peer, Duration timeout) throws Exception {
    HashStore store = new HashStore();
    FutureTask<Void> joining =
        new FutureTask<>(
            () -> {
              peer.join(new PrefixStore("cpu/", new PrefixStore("0/", store)));
              return null;
            });
    Thread.ofPlatform().daemon().start(joining);
    ProcessGroup group =
        ProcessGroup.init(
            GroupOptions.DEFAULT
                .withStore(store)
                .withRank(0)
                .withSize(2)
                .withProvider(new GlooProvider())
                .withSettings(
                    Settings.ofEnvironment(
                        Map.of("TUTTI_CLOSE_TIMEOUT", "500ms", "GLOO_SOCKET_IFNAME", "lo")))
                .withTimeout(timeout));
    joining.get(60, TimeUnit.SECONDS);
    return group;
  }

  @Test
  void thePeerIsNamed() throws Exception {
    try (RawPeer peer = new RawPeer(false);
        ProcessGroup group = group(peer, TIMEOUT)) {
      peer.send(Garbage.TEXT.bytes());
      assertThatThrownBy(() -> group.allReduce(Tensor.of(1f, 2f)))
          .isInstanceOfSatisfying(
              PeerFailedException.class, named -> assertThat(named.failedRank()).hasValue(1))
          .hasMessageContaining("rank 1")
          .hasMessageContaining(Garbage.TEXT.text);
    }
  }
}
