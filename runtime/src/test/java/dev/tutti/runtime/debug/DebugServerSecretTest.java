package dev.tutti.runtime.debug;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests how the debug server limits wrong secrets. */
@Timeout(300)
class DebugServerSecretTest {
  private static final JobToken TOKEN = JobToken.of("0123456789abcdef");
  private static final String SECRET = TOKEN.debugSecret();

  private final AtomicLong clock = new AtomicLong();
  private final HttpClient client =
      HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(60)).build();

  /** Returns the time of this machine with the clock of the test. */
  private Time time() {
    return (Time)
        Proxy.newProxyInstance(
            Time.class.getClassLoader(),
            new Class<?>[] {Time.class},
            (_, method, arguments) ->
                method.getName().equals("nanoTime")
                    ? (Object) clock.get()
                    : method.invoke(Time.SYSTEM, arguments));
  }

  private HttpResponse<String> get(PageServer server, String secret) throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + "/status"))
            .timeout(Duration.ofSeconds(100));
    if (!secret.isEmpty()) {
      request.header("Authorization", "Bearer " + secret);
    }
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void afterFiveWrongSecretsAnAddressMustPause() throws Exception {
    try (client;
        PageServer server =
            PageServer.create(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                PageAccess.ofJob(TOKEN),
                null,
                "tutti-debug-3",
                "rank 3/4",
                time())) {
      server.add("/status", PageServer.JSON, () -> "{}");
      server.start();
      for (int i = 0; i < 5; i++) {
        assertThat(get(server, SECRET + i).statusCode()).isEqualTo(401);
        assertThat(get(server, "").statusCode()).isEqualTo(401);
      }
      for (String secret : List.of(SECRET + "X", SECRET)) {
        HttpResponse<String> refused = get(server, secret);
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.body())
            .isEqualTo("too many wrong secrets from this address; try again in 2 s\n");
        assertThat(refused.headers().firstValue("Retry-After")).contains("2");
      }
      assertThat(get(server, "").statusCode()).isEqualTo(401);
      clock.addAndGet(TimeUnit.SECONDS.toNanos(1));
      assertThat(get(server, SECRET).statusCode()).isEqualTo(200);
      assertThat(get(server, SECRET + "X").statusCode()).isEqualTo(401);
      assertThat(get(server, SECRET).statusCode()).isEqualTo(429);
    }
  }
}
