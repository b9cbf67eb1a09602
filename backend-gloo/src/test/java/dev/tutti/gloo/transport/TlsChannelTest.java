package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Settings;
import dev.tutti.gloo.transport.connect.Protection;
import dev.tutti.store.JobToken;
import dev.tutti.testkit.TestAuthority;
import dev.tutti.tls.PemFile;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsFailures;
import dev.tutti.tls.TlsSettings;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.SplittableRandom;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Drives both ends of a connection in turn, because neither of them blocks. */
@Timeout(300)
class TlsChannelTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  @TempDir static Path folder;
  private static TestAuthority authority;
  private static Protection rank0;
  private static Protection rank1;

  @BeforeAll
  static void issue() throws Exception {
    authority = new TestAuthority(folder, "authority");
    rank0 = protection(authority, authority.issue("rank0"));
    rank1 = protection(authority, authority.issue("rank1"));
  }

  private static Protection protection(TestAuthority trusted, TestAuthority.Issued own) {
    return Protection.of(
        Settings.ofEnvironment(own.settings("TUTTI_GLOO_TLS", trusted.certificate())));
  }

  private static List<X509Certificate> trusted() throws Exception {
    return PemFile.certificates(authority.certificate());
  }

  /** A connection with TLS on both ends. */
  private static final class Ends implements AutoCloseable {
    final SocketChannel client;
    final SocketChannel server;
    final TlsChannel connecting;
    final TlsChannel accepting;

    Ends(Protection connects, Protection accepts) throws IOException {
      this(connects.engine(true), accepts.engine(false));
    }

    Ends(SSLEngine connects, SSLEngine accepts) throws IOException {
      try (ServerSocketChannel listener = ServerSocketChannel.open()) {
        // Small buffers, so that a write is often only partly accepted.
        listener.setOption(StandardSocketOptions.SO_RCVBUF, 8 * 1024);
        listener.bind(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0));
        client = SocketChannel.open();
        client.setOption(StandardSocketOptions.SO_SNDBUF, 8 * 1024);
        client.connect(listener.getLocalAddress());
        server = listener.accept();
      }
      Connector.configure(client);
      Connector.configure(server);
      connecting = new TlsChannel(client, connects);
      accepting = new TlsChannel(server, accepts);
    }

    Ends shaken() throws IOException {
      long deadline = System.nanoTime() + LIMIT.toNanos();
      boolean over = false;
      while (!over) {
        over = connecting.handshake();
        over &= accepting.handshake();
        assertThat(System.nanoTime() - deadline).isNegative();
      }
      return this;
    }

    @Override
    public void close() throws IOException {
      client.close();
      server.close();
    }
  }

  /** Sends random bytes in random pieces, and compares what arrives. */
  private static final class Stream {
    private static final int BYTES = 700_000;

    private final TlsChannel from;
    private final TlsChannel to;
    private final SplittableRandom sizes;
    private final SplittableRandom sent;
    private final SplittableRandom expected;
    private ByteBuffer unsent = ByteBuffer.allocate(0);
    private int sentBytes;
    private int readBytes;

    Stream(TlsChannel from, TlsChannel to, long seed) {
      this.from = from;
      this.to = to;
      sizes = new SplittableRandom(seed);
      sent = new SplittableRandom(seed + 1);
      expected = new SplittableRandom(seed + 1);
    }

    private int size() {
      return 1 + sizes.nextInt(1 << sizes.nextInt(19));
    }

    boolean isOver() {
      return readBytes == BYTES;
    }

    void step() throws IOException {
      if (!unsent.hasRemaining() && sentBytes < BYTES) {
        int size = Math.min(size(), BYTES - sentBytes);
        unsent = sizes.nextBoolean() ? ByteBuffer.allocate(size) : ByteBuffer.allocateDirect(size);
        while (unsent.hasRemaining()) {
          unsent.put((byte) sent.nextInt());
        }
        unsent.flip();
        sentBytes += size;
      }
      if (unsent.hasRemaining()) {
        int before = unsent.remaining();
        assertThat(from.write(unsent)).isEqualTo(before - unsent.remaining());
      }
      from.flush();
      int size = size();
      ByteBuffer in =
          sizes.nextBoolean() ? ByteBuffer.allocate(size) : ByteBuffer.allocateDirect(size);
      int count = to.read(in);
      assertThat(count).isEqualTo(in.position());
      if (in.hasRemaining()) {
        assertThat(to.hasBuffered()).isFalse();
      }
      in.flip();
      while (in.hasRemaining()) {
        if (in.get() != (byte) expected.nextInt()) {
          throw new AssertionError("wrong byte before " + (readBytes + in.position()));
        }
      }
      readBytes += count;
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void bytesArriveBothWaysWhateverTheirSizes(long seed) throws Exception {
    try (Ends ends = new Ends(rank0, rank1).shaken()) {
      Stream there = new Stream(ends.connecting, ends.accepting, seed);
      Stream back = new Stream(ends.accepting, ends.connecting, seed + 100);
      long deadline = System.nanoTime() + LIMIT.toNanos();
      while (!there.isOver() || !back.isOver()) {
        there.step();
        back.step();
        assertThat(System.nanoTime() - deadline).isNegative();
      }
    }
  }

  @Test
  void nothingOnTheWireIsReadable() throws Exception {
    try (Ends ends = new Ends(rank0, rank1).shaken()) {
      byte[] secret = "nobody may read this".getBytes(java.nio.charset.StandardCharsets.US_ASCII);
      ends.connecting.write(ByteBuffer.wrap(secret));
      ByteBuffer raw = ByteBuffer.allocate(1000);
      long deadline = System.nanoTime() + LIMIT.toNanos();
      while (ends.server.read(raw) == 0) {
        assertThat(System.nanoTime() - deadline).isNegative();
      }
      String wire = new String(raw.array(), java.nio.charset.StandardCharsets.ISO_8859_1);
      assertThat(raw.position()).isGreaterThan(secret.length);
      assertThat(wire).doesNotContain("nobody");
    }
  }

  @Test
  void whatIsSentBeforeTheGoodByeIsReadBeforeTheEnd() throws Exception {
    try (Ends ends = new Ends(rank0, rank1).shaken()) {
      ends.connecting.write(ByteBuffer.wrap(new byte[] {1, 2, 3}));
      ends.connecting.close();
      ends.client.shutdownOutput();
      ByteBuffer in = ByteBuffer.allocate(100);
      long deadline = System.nanoTime() + LIMIT.toNanos();
      while (ends.accepting.read(in) >= 0) {
        assertThat(System.nanoTime() - deadline).isNegative();
      }
      assertThat(in.flip()).isEqualTo(ByteBuffer.wrap(new byte[] {1, 2, 3}));
      assertThat(ends.accepting.read(ByteBuffer.allocate(1))).isEqualTo(-1);
    }
  }

  @Test
  void changedBytesAreNoticed() throws Exception {
    try (Ends ends = new Ends(rank0, rank1).shaken()) {
      ends.client.write(ByteBuffer.wrap(new byte[] {23, 3, 3, 0, 20}));
      ends.client.write(ByteBuffer.wrap(new byte[20]));
      long deadline = System.nanoTime() + LIMIT.toNanos();
      assertThatThrownBy(
              () -> {
                while (ends.accepting.read(ByteBuffer.allocate(100)) == 0) {
                  assertThat(System.nanoTime() - deadline).isNegative();
                }
              })
          .isInstanceOf(SSLException.class);
    }
  }

  @Test
  void bothSidesHearOfAnotherAuthority() throws Exception {
    TestAuthority other = new TestAuthority(folder, "other");
    Protection stranger = protection(authority, other.issue("stranger"));
    assertRefused(stranger, rank1, "unable to find valid certification path", "certificate");
    assertRefused(rank1, stranger, "unable to find valid certification path", "certificate");
  }

  @Test
  void bothSidesHearOfAnExpiredCertificate() throws Exception {
    // Skips the check at the start, because the end may come later.
    TestAuthority.Issued old = authority.issue("old", Instant.now().minus(Duration.ofMinutes(5)));
    Protection expired =
        new Protection(
            JobToken.NONE,
            TlsSettings.context(
                PemFile.certificates(old.certificate()), PemFile.key(old.key(), "EC"), trusted()));
    assertRefused(expired, rank1, "NotAfter", "certificate");
    assertRefused(rank1, expired, "NotAfter", "certificate");
  }

  @Test
  void whoShowsNoCertificateIsRefused() throws Exception {
    SSLContext anonymous = SSLContext.getInstance(TlsSettings.PROTOCOL);
    anonymous.init(null, TlsSettings.trust(trusted()), null);
    Protection nobody = new Protection(JobToken.NONE, anonymous);
    assertRefused(nobody, rank1, "Empty client certificate chain", "certificate");
  }

  @Test
  void whoSpeaksPlainlyIsRefused() throws Exception {
    try (Ends ends = new Ends(rank0, rank1)) {
      ends.client.write(ByteBuffer.wrap(RawPeer.words(48, 2, 0, 0, 1, 0)));
      long deadline = System.nanoTime() + LIMIT.toNanos();
      assertThatThrownBy(
              () -> {
                while (!ends.accepting.handshake()) {
                  assertThat(System.nanoTime() - deadline).isNegative();
                }
              })
          .isInstanceOf(SSLException.class)
          .hasMessageContaining("SSL");
    }
    try (Ends ends = new Ends(rank0, rank1)) {
      ends.client.shutdownOutput();
      long deadline = System.nanoTime() + LIMIT.toNanos();
      assertThatThrownBy(
              () -> {
                while (!ends.accepting.handshake()) {
                  assertThat(System.nanoTime() - deadline).isNegative();
                }
              })
          .isInstanceOf(EOFException.class);
    }
  }

  /** Asserts that one side rejects the connection and the other side detects it. */
  private static void assertRefused(
      Protection connects, Protection accepts, String why, String alert) throws Exception {
    String[] messages = new String[2];
    try (Ends ends = new Ends(connects, accepts)) {
      TlsChannel[] sides = {ends.connecting, ends.accepting};
      long deadline = System.nanoTime() + LIMIT.toNanos();
      while (messages[0] == null || messages[1] == null) {
        for (int i = 0; i < 2; i++) {
          try {
            if (messages[i] == null && sides[i].handshake()) {
              // In TLS 1.3, the connecting side is notified only afterwards.
              sides[i].read(ByteBuffer.allocate(100));
            }
          } catch (SSLHandshakeException e) {
            messages[i] = TlsFailures.text(e);
            sides[i].close();
          }
        }
        assertThat(System.nanoTime() - deadline).as(String.join("; ", messages)).isNegative();
      }
    }
    assertThat(messages).anySatisfy(message -> assertThat(message).contains(why));
    assertThat(messages)
        .anySatisfy(message -> assertThat(message).contains("fatal alert").contains(alert));
  }
}
