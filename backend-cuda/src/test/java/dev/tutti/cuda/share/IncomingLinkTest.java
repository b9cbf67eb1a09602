package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.store.JobToken;
import dev.tutti.store.net.TokenExchange;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests whom an {@link IncomingLink} believes, and what it delivers. */
class IncomingLinkTest {
  private static final long TOKEN = 42;
  private static final JobToken SECRET = JobToken.of("a token of this job");
  private static final int SIZE = 3;

  @TempDir private Path directory;

  private final RankLinksTest.Notes notes = new RankLinksTest.Notes(0);
  private IntPredicate admits = _ -> true;
  private Selector selector;
  private SocketChannel peer;
  private IncomingLink link;
  private SelectionKey key;

  @BeforeEach
  void connect() throws IOException {
    selector = Selector.open();
    UnixDomainSocketAddress address = UnixDomainSocketAddress.of(directory.resolve("socket"));
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(address);
      peer = SocketChannel.open(address);
      SocketChannel channel = server.accept();
      channel.configureBlocking(false);
      link =
          new IncomingLink(
              channel,
              null,
              new LinkAddress(address, false, TOKEN),
              JobToken.NONE,
              1,
              SIZE,
              sender -> admits.test(sender));
      link.select(selector);
      key = channel.keyFor(selector);
    }
  }

  @AfterEach
  void close() throws IOException {
    peer.close();
    link.channel().close();
    selector.close();
  }

  private void write(long... numbers) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Long.BYTES);
    bytes.asLongBuffer().put(numbers);
    assertThat(peer.write(bytes)).isEqualTo(bytes.limit());
  }

  @ParameterizedTest
  @CsvSource({"0, 2, 43", "0, 3, 42", "0, -1, 42", "1, 2, 42"})
  void aFirstNoteWithoutTheTokenOrARankEndsTheLink(long kind, long rank, long token)
      throws Exception {
    write(kind, rank, token, 0, 0, 2, TOKEN, 0, 5, 1, 2, 3);
    assertThat(link.read(key, notes)).isFalse();
    assertThat(link.sender()).isEqualTo(-1);
    assertThat(notes.all).isEmpty();
  }

  @Test
  void aSecondLinkOfARankIsRefused() throws Exception {
    admits = sender -> sender != 2;
    write(0, 2, TOKEN, 0, 5, 1, 2, 3);
    assertThatThrownBy(() -> link.read(key, notes))
        .isInstanceOf(IncomingLink.RefusedException.class)
        .hasMessage("that rank has a link already");
    assertThat(link.sender()).isEqualTo(-1);
    assertThat(notes.all).isEmpty();
  }

  /** A listener on the network, to which strangers connect that have read the packets of a rank. */
  private final class OverNetwork implements AutoCloseable {
    private final ServerSocketChannel server = ServerSocketChannel.open();
    private final LinkAddress address;

    OverNetwork() throws IOException {
      server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      address = new LinkAddress(server.getLocalAddress(), false, TOKEN);
    }

    /** Makes a link of a new connection. */
    void accept() throws IOException {
      peer.close();
      link.channel().close();
      peer = SocketChannel.open(server.getLocalAddress());
      SocketChannel channel = server.accept();
      channel.configureBlocking(false);
      link = new IncomingLink(channel, null, address, SECRET, 1, SIZE, _ -> true);
      link.select(selector);
      key = channel.keyFor(selector);
    }

    /** Reads until the link has a sender, or is refused. */
    void introduce() throws IOException {
      while (link.sender() < 0) {
        assertThat(selector.select(60_000)).isPositive();
        selector.selectedKeys().clear();
        assertThat(link.read(key, notes)).isTrue();
      }
    }

    @Override
    public void close() throws IOException {
      server.close();
    }
  }

  @Test
  void overANetworkTheFirstNoteAloneOpensNothing() throws Exception {
    try (OverNetwork network = new OverNetwork()) {
      network.accept();
      write(0, 2, TOKEN, 0, 5, 1, 2, 3, 6, 1, 2, 3, 7, 1, 2, 3);
      assertThatThrownBy(network::introduce)
          .isInstanceOf(IncomingLink.RefusedException.class)
          .hasMessageStartingWith(
              "it did not prove that it has the token of this rank; TUTTI_TOKEN");
      assertThat(notes.all).isEmpty();
    }
  }

  @Test
  void whoHasTheTokenMaySpeakAndWhoRepeatsItsBytesMayNot() throws Exception {
    try (OverNetwork network = new OverNetwork()) {
      network.accept();
      RecordingChannel wire = new RecordingChannel(peer);
      TokenExchange proof = network.address.proof(SECRET, true, 2, 1);
      Thread sender =
          Thread.ofVirtual()
              .start(
                  () -> {
                    try {
                      write(0, 2, TOKEN, 0);
                      while (!proof.advance(wire)) {
                        assertThat(wire.isOpen()).isTrue();
                      }
                    } catch (IOException e) {
                      throw new UncheckedIOException(e);
                    }
                  });
      network.introduce();
      sender.join();
      assertThat(link.sender()).isEqualTo(2);
      network.accept();
      write(0, 2, TOKEN, 0);
      peer.write(ByteBuffer.wrap(wire.written.toByteArray()));
      assertThatThrownBy(network::introduce).isInstanceOf(IncomingLink.RefusedException.class);
    }
  }

  /** Keeps what is written to a channel. */
  private static final class RecordingChannel implements ByteChannel {
    private final ByteChannel channel;
    private final ByteArrayOutputStream written = new ByteArrayOutputStream();

    RecordingChannel(ByteChannel channel) {
      this.channel = channel;
    }

    @Override
    public int read(ByteBuffer target) throws IOException {
      return channel.read(target);
    }

    @Override
    public int write(ByteBuffer source) throws IOException {
      ByteBuffer copy = source.duplicate();
      byte[] bytes = new byte[copy.remaining()];
      copy.get(bytes);
      written.writeBytes(bytes);
      return channel.write(source);
    }

    @Override
    public boolean isOpen() {
      return channel.isOpen();
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  @Test
  void notesAreDeliveredOnceTheyAreComplete() throws Exception {
    assertThat(link.read(key, notes)).isTrue();
    write(0, 2, TOKEN);
    assertThat(link.read(key, notes)).isTrue();
    assertThat(link.sender()).isEqualTo(-1);
    write(0, 5, 1, 2, 3, 6);
    assertThat(link.read(key, notes)).isTrue();
    assertThat(link.sender()).isEqualTo(2);
    assertThat(notes.all).containsExactly(List.of(2L, 5L, 1L, 2L, 3L));
    write(4, 5, 6);
    peer.close();
    assertThat(link.read(key, notes)).isTrue();
    assertThat(link.read(key, notes)).isFalse();
    assertThat(notes.all).containsExactly(List.of(2L, 5L, 1L, 2L, 3L), List.of(2L, 6L, 4L, 5L, 6L));
  }
}
