package dev.tutti.gloo.transport.connect;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Reads damaged and random rank addresses. There are 100,000 by default; {@code
 * -Dtutti.fuzz=10000000} makes them 10 million.
 */
class RankBlobFuzzTest {
  private static final int INPUTS = Integer.getInteger("tutti.fuzz", 100_000);

  @Test
  @Timeout(900)
  void refusesOrReadsButNeverBreaks() throws Exception {
    SplittableRandom random = new SplittableRandom(20261120);
    InetSocketAddress[] sockets = {
      new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 4711),
      new InetSocketAddress(InetAddress.ofLiteral("fe80::1"), 9)
    };
    long read = 0;
    long refused = 0;
    for (int i = 0; i < INPUTS; i++) {
      int identifiers = random.nextInt(4);
      PeerAddress address = new PeerAddress(sockets[i & 1], -1, random.nextBoolean(), 0, 0);
      byte[] bytes = new RankBlob("host" + i, address, new long[identifiers]).toBytes();
      int flips = random.nextInt(3);
      for (int f = 0; f < flips; f++) {
        // The lengths at the front decide most of what can go wrong.
        int at = random.nextInt(random.nextBoolean() ? 16 : bytes.length);
        bytes[at] = (byte) random.nextInt();
      }
      if (random.nextInt(3) == 0) {
        bytes = Arrays.copyOf(bytes, random.nextInt(2 * bytes.length));
      }
      try {
        RankBlob blob = RankBlob.read(bytes, identifiers);
        assertThat(blob.identifiers()).hasSize(identifiers);
        assertThat(blob.hostname().length()).isLessThanOrEqualTo(bytes.length);
        read++;
      } catch (IllegalArgumentException e) {
        refused++;
      }
    }
    assertThat(read).isGreaterThan(INPUTS / 10);
    assertThat(refused).isGreaterThan(INPUTS / 10);
  }
}
