package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.Settings;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.StoreContract;
import dev.tutti.contracts.TestTier;
import dev.tutti.store.JobToken;
import dev.tutti.testkit.TestAuthority;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Runs the store contract over TLS, and tests which clients are rejected. */
@Sampled
class TcpStoreTlsTest extends StoreContract {
  private static final Duration LONG = Duration.ofMinutes(10);
  private static final JobToken TOKEN = JobToken.of("the token of this job");

  @TempDir private static Path folder;
  private static SSLContext one;
  private static SSLContext other;

  @BeforeAll
  static void issue() throws Exception {
    TestAuthority authority = new TestAuthority(folder, "one");
    TestAuthority stranger = new TestAuthority(folder, "other");
    one = context(authority.certificate(), authority.issue("member"));
    other = context(stranger.certificate(), stranger.issue("stranger"));
  }

  private static SSLContext context(Path trusted, TestAuthority.Issued own) {
    return Objects.requireNonNull(
        TlsSettings.load(Settings.ofEnvironment(own.settings("TUTTI_TLS", trusted))));
  }

  /** The protocol has no answer to a set or a push. */
  @Override
  public boolean acknowledges() {
    return false;
  }

  @Override
  protected Store open() {
    return new TcpStore(
        TcpStoreOptions.of("127.0.0.1", 0).withServer(true).withTls(one).withToken(TOKEN));
  }

  private static TcpStoreServer server(@Nullable SSLContext tls) {
    return server(tls, JobToken.NONE);
  }

  private static TcpStoreServer server(@Nullable SSLContext tls, JobToken token) {
    return new TcpStoreServer(InetAddress.getLoopbackAddress(), 0, token, tls);
  }

  private static TcpStoreOptions options(TcpStoreServer server, @Nullable SSLContext tls) {
    return TcpStoreOptions.of("127.0.0.1", server.port())
        .withTimeout(LONG)
        .withToken(JobToken.NONE)
        .withTls(tls);
  }

  private static Throwable refused(TcpStoreServer server, @Nullable SSLContext tls) {
    return refused(options(server, tls));
  }

  private static Throwable refused(TcpStoreOptions options) {
    Throwable failure = catchThrowable(() -> new TcpStore(options).close());
    assertThat(failure).isInstanceOf(StoreException.class);
    return failure;
  }

  @Test
  @Timeout(300)
  void largeAndManyValuesGoBothWays() {
    try (TcpStoreServer server = server(one);
        TcpStore store = new TcpStore(options(server, one));
        TcpStore reader = new TcpStore(options(server, one))) {
      Random random = new Random(7);
      List<String> keys = new ArrayList<>();
      List<byte[]> values = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        byte[] value = new byte[i == 0 ? Store.MAX_VALUE_BYTES : random.nextInt(400_000)];
        random.nextBytes(value);
        keys.add("key" + i);
        values.add(value);
      }
      store.multiSet(keys, values);
      List<byte[]> read = reader.multiGet(keys, LONG);
      for (int i = 0; i < keys.size(); i++) {
        assertThat(Arrays.equals(read.get(i), values.get(i))).as("value %d", i).isTrue();
      }
    }
  }

  @Test
  @Timeout(300)
  void whoEncryptsOtherwiseIsToldAtOnce() {
    try (TcpStoreServer encrypted = server(one);
        TcpStoreServer plain = server(null)) {
      assertThat(refused(encrypted, null))
          .hasMessageContaining("uses TLS, but this process does not; TUTTI_TLS must be the same");
      assertThat(refused(plain, one))
          .hasMessageContaining("it refused this process: (unexpected_message)")
          .hasMessageContaining("TUTTI_TLS must be the same for the");
      try (TcpStore member = new TcpStore(options(encrypted, one))) {
        member.set("key", "value");
        assertThat(member.get("key")).isEqualTo(new byte[] {'v', 'a', 'l', 'u', 'e'});
      }
    }
  }

  @Test
  @Timeout(300)
  void whoIsNotTrustedIsToldWhichSideRefused() throws GeneralSecurityException, IOException {
    TestAuthority authority = new TestAuthority(folder, "third");
    try (TcpStoreServer server = server(one);
        TcpStoreServer secret = server(one, TOKEN)) {
      assertThat(refused(server, other))
          .hasMessageContaining("this process refused it: ")
          .hasMessageContaining(
              "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT of the other side must be issued by an authority"
                  + " in GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE of this process");
      SSLContext trusting = context(folder.resolve("one.pem"), authority.issue("third"));
      for (TcpStoreOptions options :
          List.of(options(server, trusting), options(secret, trusting).withToken(TOKEN))) {
        assertThat(refused(options))
            .hasMessageContaining("it refused this process: ")
            .hasMessageContaining(
                "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT of this process must be issued by an authority"
                    + " in GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE of the other side");
      }
    }
  }

  /** Serves other clients while some send requests without replies as fast as they can. */
  @Test
  @Timeout(300)
  void fastSendersKeepNobodyWaiting() throws Exception {
    int senders = 2;
    byte[] requests = setRequests(10_000);
    AtomicBoolean done = new AtomicBoolean();
    List<Thread> threads = new ArrayList<>();
    List<SSLSocket> sockets = new ArrayList<>();
    try (TcpStoreServer server = server(one);
        TcpStore member = new TcpStore(options(server, one))) {
      CountDownLatch sending = new CountDownLatch(senders);
      for (int i = 0; i < senders; i++) {
        SSLSocket socket =
            (SSLSocket)
                one.getSocketFactory()
                    .createSocket(InetAddress.getLoopbackAddress(), server.port());
        sockets.add(socket);
        threads.add(
            Thread.ofPlatform().daemon().start(() -> send(socket, requests, sending, done)));
      }
      sending.await();
      for (int i = 1; i <= (TestTier.isFast() ? 25 : 100); i++) {
        assertThat(member.add("count", 1)).isEqualTo(i);
      }
      done.set(true);
    } finally {
      for (SSLSocket socket : sockets) {
        socket.close();
      }
      for (Thread thread : threads) {
        thread.join();
      }
    }
  }

  private static byte[] setRequests(int count) {
    int size = 2 + 2 * Long.BYTES;
    ByteBuffer out = ByteBuffer.allocate(count * size).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < count; i++) {
      out.put((byte) 1).putLong(1).put((byte) '/').putLong(0);
    }
    return out.array();
  }

  private static void send(
      SSLSocket socket, byte[] requests, CountDownLatch sending, AtomicBoolean done) {
    try {
      OutputStream out = socket.getOutputStream();
      out.write(new byte[] {0, (byte) 0xce, (byte) 0xf7, (byte) 0x85, 0x3c});
      for (int i = 0; !done.get(); i++) {
        out.write(requests);
        if (i == 10) {
          sending.countDown();
        }
      }
    } catch (IOException e) {
      assertThat(done).as("ends when it is closed, not by %s", e).isTrue();
    }
  }

  /** Drops a connection that does not speak TLS, and continues to serve. */
  @Test
  @Timeout(300)
  void garbageEndsOnlyItsConnection() throws IOException {
    try (TcpStoreServer server = server(one);
        Socket garbage = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
      garbage.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
      garbage.setSoTimeout(120_000);
      while (garbage.getInputStream().read() >= 0) {
        // A TLS alert.
      }
      try (TcpStore member = new TcpStore(options(server, one))) {
        assertThat(member.add("count", 2)).isEqualTo(2);
      }
    }
  }

  @Test
  void aFileThatIsMissingIsNamed() {
    assertThatThrownBy(() -> TlsSettings.load(Settings.ofEnvironment(Map.of("TUTTI_TLS", "1"))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE is not set, and TUTTI_TLS");
  }
}
