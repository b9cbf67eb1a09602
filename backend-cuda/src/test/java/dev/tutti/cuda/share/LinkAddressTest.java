package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Tests the text with which a rank introduces itself. */
class LinkAddressTest {
  @Test
  void introductionsNameTheTokenAndThePlace() throws IOException {
    InetSocketAddress host = new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 4242);
    InetSocketAddress v6 = new InetSocketAddress(InetAddress.ofLiteral("::1"), 1);
    Map<String, LinkAddress> addresses =
        Map.of(
            "+000000000000002a/run/a b",
                new LinkAddress(UnixDomainSocketAddress.of("/run/a b"), false, 42),
            "@ffffffffffffffff4242 127.0.0.1", new LinkAddress(host, false, -1),
            "#80000000000000004242 127.0.0.1", new LinkAddress(host, true, Long.MIN_VALUE),
            "@00000000000000001 0:0:0:0:0:0:0:1", new LinkAddress(v6, false, 0));
    for (Map.Entry<String, LinkAddress> each : addresses.entrySet()) {
      assertThat(each.getValue().introduction()).isEqualTo(each.getKey());
      assertThat(LinkAddress.parse(each.getKey())).isEqualTo(each.getValue());
    }
  }
}
