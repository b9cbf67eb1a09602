package dev.tutti.cuda.share;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests whom an {@link IncomingLink} believes, and what it delivers. */
class IncomingLinkTest {
  private static final long TOKEN = 42;
  private static final int SIZE = 3;

  @TempDir private Path directory;

  private final RankLinksTest.Notes notes = new RankLinksTest.Notes(0);
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
      link = new IncomingLink(channel, null, TOKEN, SIZE);
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
