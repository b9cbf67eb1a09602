package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.CallOptions;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.Work;
import dev.tutti.store.HashStore;
import dev.tutti.store.JobToken;
import dev.tutti.store.tcp.TcpStoreServer;
import dev.tutti.tls.PemFile;
import dev.tutti.tls.TlsSettings;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;
import javax.net.ssl.X509TrustManager;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Tests groups whose ranks present certificates and encrypt; {@code SimulatedTlsTest} refuses
 * ranks.
 */
@Timeout(300)
@Order(1)
class TlsTest {
  private static final int LARGE = 1_000_001;

  @TempDir Path folder;

  @ParameterizedTest
  @CsvSource({"2, 0, ''", "2, 16M, ''", "3, 16M, a token of this job"})
  void ranksThatTrustEachOtherWorkTogether(int size, String sharedBytes, String token)
      throws Exception {
    Settings settings =
        new TlsWorld(folder, "authority")
            .settings("rank", "TUTTI_GLOO_SHARED_BYTES", sharedBytes, "TUTTI_TOKEN", token);
    List<Integer> ranks =
        GlooWorld.run(
            size,
            settings,
            group -> {
              float[] values = new float[LARGE];
              for (int i = 0; i < LARGE; i++) {
                values[i] = i % 1000 + group.rank();
              }
              Tensor tensor = Tensor.of(values);
              group.allReduce(tensor);
              float[] sums = tensor.toFloatArray();
              for (int i = 0; i < LARGE; i++) {
                if (sums[i] != i % 1000 * size + size * (size - 1) / 2) {
                  throw new AssertionError("element " + i + " is " + sums[i]);
                }
              }
              for (int round = 0; round < 50; round++) {
                Tensor small = Tensor.of(round + group.rank(), 1f);
                group.allReduce(small);
                assertThat(small.toFloatArray())
                    .containsExactly(round * size + size * (size - 1) / 2f, size);
              }
              int next = (group.rank() + 1) % size;
              int before = (group.rank() + size - 1) % size;
              Tensor got = Tensor.allocate(tensor.dtype(), LARGE);
              Work sending = group.send(tensor, next, 0, CallOptions.ASYNC);
              group.recv(got, before);
              sending.await();
              assertThat(got.segment().mismatch(tensor.segment())).isEqualTo(-1);
              return group.rank();
            });
    assertThat(ranks).hasSize(size);
  }

  /** A client with the authority's certificate reads the status of a rank over HTTPS only. */
  @Test
  void theDebugServerEncryptsToo() throws Exception {
    String token = "a token of this job";
    TlsWorld world = new TlsWorld(folder, "authority");
    Settings settings =
        world
            .settings("rank", "TUTTI_TOKEN", token, "TUTTI_DEBUG_PORT", "0")
            .with("TUTTI_DEBUG_HOST", "0.0.0.0")
            .with("TUTTI_TLS", "true");
    Logger logger = Logger.getLogger("dev.tutti.runtime.group.JobDebug");
    BlockingQueue<LogRecord> said = new LinkedBlockingQueue<>();
    Handler handler = new QueueHandler(said);
    logger.addHandler(handler);
    try {
      HttpResponse<String> answer =
          GlooWorld.run(1, settings, group -> status(said.remove(), token, settings)).getFirst();
      assertThat(answer.statusCode()).isEqualTo(200);
      assertThat(answer.body()).startsWith("{\"rank\":0,\"size\":1,");
      assertThat(answer.sslSession().orElseThrow().getProtocol()).isEqualTo("TLSv1.3");
    } finally {
      logger.removeHandler(handler);
    }
  }

  private static HttpResponse<String> status(LogRecord started, String token, Settings settings)
      throws Exception {
    assertThat(started.getParameters()[1]).asString().startsWith("0.0.0.0:");
    assertThat(started.getParameters()[3]).isEqualTo("https");
    // The certificates of a job name no hosts, so this client compares none.
    SSLContext trusting = SSLContext.getInstance(TlsSettings.PROTOCOL);
    Path authorities = Path.of(settings.get(TlsSettings.AUTHORITIES));
    X509TrustManager trust =
        (X509TrustManager) TlsSettings.trust(PemFile.certificates(authorities))[0];
    trusting.init(null, new TrustManager[] {new NamelessTrust(trust)}, null);
    URI uri = URI.create("https://127.0.0.1:" + started.getParameters()[2] + "/status");
    HttpRequest request =
        HttpRequest.newBuilder(uri)
            .header("Authorization", "Bearer " + JobToken.of(token).debugSecret())
            .build();
    try (HttpClient client = HttpClient.newBuilder().sslContext(trusting).build()) {
      return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
  }

  /** Checks the chain of a certificate, but not which host it is for. */
  private static final class NamelessTrust extends X509ExtendedTrustManager {
    private final X509TrustManager chain;

    NamelessTrust(X509TrustManager chain) {
      this.chain = chain;
    }

    @Override
    public void checkServerTrusted(X509Certificate[] shown, String type, SSLEngine engine)
        throws CertificateException {
      chain.checkServerTrusted(shown, type);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] shown, String type, Socket socket)
        throws CertificateException {
      chain.checkServerTrusted(shown, type);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] shown, String type)
        throws CertificateException {
      chain.checkServerTrusted(shown, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] shown, String type, SSLEngine engine) {}

    @Override
    public void checkClientTrusted(X509Certificate[] shown, String type, Socket socket) {}

    @Override
    public void checkClientTrusted(X509Certificate[] shown, String type) {}

    @Override
    public X509Certificate[] getAcceptedIssuers() {
      return chain.getAcceptedIssuers();
    }
  }

  /** Keeps what is logged. */
  private static final class QueueHandler extends Handler {
    private final BlockingQueue<LogRecord> records;

    QueueHandler(BlockingQueue<LogRecord> records) {
      this.records = records;
    }

    @Override
    public void publish(LogRecord logged) {
      records.add(logged);
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  }

  /** Encrypts the store and the ranks with a single setting. */
  @Test
  void oneSettingEncryptsStoreAndRanks() throws Exception {
    Settings settings =
        new TlsWorld(folder, "authority")
            .settings("rank", "TUTTI_GLOO_SHARED_BYTES", "0")
            .with("TUTTI_GLOO_TLS", "false")
            .with("TUTTI_TLS", "true");
    try (TcpStoreServer server =
        new TcpStoreServer(
            InetAddress.getLoopbackAddress(), 0, JobToken.NONE, TlsSettings.load(settings))) {
      Settings served =
          settings
              .with("MASTER_ADDR", "127.0.0.1")
              .with("MASTER_PORT", Integer.toString(server.port()))
              .with("TORCHELASTIC_USE_AGENT_STORE", "1");
      List<Float> sums =
          GlooWorld.inParallel(
              2,
              rank -> {
                GroupOptions options =
                    GroupOptions.DEFAULT
                        .withRank(rank)
                        .withSize(2)
                        .withProvider(new GlooProvider())
                        .withTimeout(GlooWorld.TIMEOUT)
                        .withSettings(served);
                Settings plain = served.with("TUTTI_TLS", "false");
                assertThatThrownBy(() -> ProcessGroup.init(options.withSettings(plain)))
                    .hasMessageContaining("uses TLS, but this process does not");
                try (ProcessGroup group = ProcessGroup.init(options)) {
                  Tensor tensor = Tensor.of(rank + 1f);
                  group.allReduce(tensor);
                  return tensor.toFloatArray()[0];
                }
              });
      assertThat(sums).containsExactly(3f, 3f);
      assertThat(new GlooProvider().findings(settings))
          .anySatisfy(line -> assertThat(line).startsWith("encrypted between ranks"));
    }
  }

  @Test
  void filesThatCannotBeUsedAreNamed() throws Exception {
    TlsWorld world = new TlsWorld(folder, "authority");
    Settings good = world.settings("good");
    Path empty = Files.writeString(folder.resolve("empty.pem"), "");
    String certificate = "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT";
    String key = "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY";
    String authorities = "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE";
    assertRefused(
        world.settings("old", Instant.now().minus(Duration.ofDays(1))),
        certificate,
        "old.pem",
        "NotAfter");
    assertRefused(good.with(certificate, "/no/such/file"), certificate, "NoSuchFile");
    assertRefused(good.with(certificate, empty.toString()), certificate, "contains no certificate");
    assertRefused(good.with(key, empty.toString()), key, "-----BEGIN PRIVATE KEY-----", "openssl");
    assertRefused(good.with(authorities, empty.toString()), authorities, "contains no certificate");
    assertRefused(
        GlooWorld.settings("TUTTI_GLOO_TLS", "1"), authorities, "is not set, and TUTTI_GLOO_TLS");
    world.settings("another");
    assertRefused(
        good.with(key, folder.resolve("another.key").toString()), key, "does not belong to");
  }

  private static void assertRefused(Settings settings, String... words) throws Exception {
    HashStore store = new HashStore();
    List<Throwable> failures =
        GlooWorld.inParallel(
            2,
            rank -> {
              GroupOptions options = GlooWorld.options(store, rank, 2, settings);
              try (ProcessGroup group = ProcessGroup.init(options)) {
                return new AssertionError("rank " + group.rank() + " is in");
              } catch (TuttiException e) {
                return e;
              }
            });
    assertThat(failures)
        .hasOnlyElementsOfType(TuttiException.class)
        .allSatisfy(e -> assertThat(e).hasMessageContainingAll(words))
        .allSatisfy(e -> assertThat(e).hasMessageContaining(" could not be set up on rank "));
    assertThat(new GlooProvider().findings(settings))
        .anySatisfy(line -> assertThat(line).contains("cannot be encrypted: ").contains(words));
  }
}
