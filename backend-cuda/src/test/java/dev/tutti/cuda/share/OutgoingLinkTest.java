package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.store.JobToken;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import org.junit.jupiter.api.Test;

class OutgoingLinkTest {
  /** Gives the rank the port on which the peer listened, as the system does by chance. */
  @Test
  void aRankDoesNotTakeItselfForAPeerThatIsGone() throws Exception {
    SocketChannel channel =
        SocketChannel.open().bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    InetSocketAddress gone = (InetSocketAddress) channel.getLocalAddress();
    OutgoingLink link =
        OutgoingLink.connect(0, 1, new LinkAddress(gone, false, 17), null, JobToken.NONE, channel);
    try (Selector selector = Selector.open()) {
      assertThatThrownBy(
              () -> {
                while (!link.flush()) {
                  link.select(selector);
                  selector.select();
                }
              })
          .isInstanceOf(ConnectException.class)
          .hasMessage("no process listens on 127.0.0.1:" + gone.getPort());
    }
    assertThat(channel.isOpen()).isFalse();
  }
}
