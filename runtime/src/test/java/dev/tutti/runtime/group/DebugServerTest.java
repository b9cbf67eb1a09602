package dev.tutti.runtime.group;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the debug server of a rank shows, and to which clients. */
@Timeout(300)
@Order(1)
class DebugServerTest {
  private static final String TOKEN = "0123456789abcdef";
  private static final String SECRET = JobToken.of(TOKEN).debugSecret();
  private static final List<String> PATHS =
      List.of(
          "/",
          "/status",
          "/flight-record",
          "/stacks",
          "/settings",
          "/metrics",
          "/job",
          "/job.js",
          "/job.css");

  private final LogCapture said = new LogCapture(JobDebug.class);
  private final HttpClient client =
      HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(60)).build();
  private final ScriptedProvider provider = new ScriptedProvider();

  @AfterEach
  void deafen() {
    said.close();
    client.close();
  }

  private ProcessGroup group() {
    return provider.alone("TUTTI_DEBUG_PORT", "0", "TUTTI_TOKEN", TOKEN);
  }

  private int port() {
    LogRecord last = said.records.getLast();
    return Integer.parseInt((String) last.getParameters()[2]);
  }

  private HttpResponse<String> send(int port, String method, String path, String... headers)
      throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
            .timeout(Duration.ofSeconds(100))
            .method(method, HttpRequest.BodyPublishers.noBody());
    for (int i = 0; i < headers.length; i += 2) {
      request.header(headers[i], headers[i + 1]);
    }
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  private String get(int port, String path) throws Exception {
    HttpResponse<String> answer = send(port, "GET", path, "Authorization", "Bearer " + SECRET);
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    return answer.body();
  }

  private static String basic(String user, String password) {
    byte[] both = (user + ":" + password).getBytes(UTF_8);
    return "Basic " + Base64.getEncoder().encodeToString(both);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "Bearer",
        "Bearer ",
        "Bearer 0123456789abcdef",
        "Bearer 70da55ac8d4056ff3a447479fa1b31934bc40ea5cbcbffed05c6df283e2ebee5",
        "Bearer 70da55ac8d4056ff3a447479fa1b31934bc40ea5cbcbffed05c6df283e2ebee40",
        "Bearer short",
        "Basic",
        "Basic ???",
        "Digest 70da55ac8d4056ff3a447479fa1b31934bc40ea5cbcbffed05c6df283e2ebee4",
        "70da55ac8d4056ff3a447479fa1b31934bc40ea5cbcbffed05c6df283e2ebee4"
      })
  void withoutTheSecretThereIsNothingBut401(String authorization) throws Exception {
    try (ProcessGroup _ = group()) {
      boolean isWrong = !authorization.isEmpty();
      for (String path : isWrong ? List.of("/status") : PATHS) {
        for (String method :
            isWrong ? List.of("GET") : List.of("GET", "POST", "PUT", "DELETE", "OPTIONS")) {
          HttpResponse<String> answer =
              isWrong
                  ? send(port(), method, path, "Authorization", authorization)
                  : send(port(), method, path);
          assertThat(answer.statusCode()).isEqualTo(401);
          assertThat(answer.body())
              .isEqualTo("the secret is missing or wrong; 'tutti token debug' prints it\n");
          assertThat(answer.headers().firstValue("WWW-Authenticate"))
              .contains("Basic realm=\"tutti\"");
        }
      }
      assertThat(send(port(), "GET", "/nothing").statusCode()).isEqualTo(401);
      String wrong = basic("rank", TOKEN);
      assertThat(send(port(), "GET", "/status", "Authorization", wrong).statusCode())
          .isEqualTo(401);
    }
  }

  @Test
  void aHeadRequestGetsTheHeadersAndLogsNothing() throws Exception {
    try (LogCapture warnings = new LogCapture("com.sun.net.httpserver");
        ProcessGroup _ = group()) {
      String length =
          send(port(), "GET", "/job.js", "Authorization", "Bearer " + SECRET)
              .headers()
              .firstValue("Content-Length")
              .orElseThrow();
      HttpResponse<String> head =
          send(port(), "HEAD", "/job.js", "Authorization", "Bearer " + SECRET);
      assertThat(head.statusCode()).isEqualTo(200);
      assertThat(head.headers().firstValue("Content-Length")).contains(length);
      assertThat(head.body()).isEmpty();
      assertThat(send(port(), "HEAD", "/job.js").statusCode()).isEqualTo(401);
      assertThat(warnings.records).isEmpty();
    }
  }

  @Test
  void itDoesNotKeepTheJvmAlive() {
    try (ProcessGroup _ = group()) {
      assertThat(Thread.getAllStackTraces().keySet())
          .filteredOn(thread -> thread.getName().startsWith("HTTP-Dispatcher"))
          .isNotEmpty()
          .allMatch(Thread::isDaemon);
    }
  }

  @Test
  void theSecretIsABearerOrThePasswordOfABrowser() throws Exception {
    try (ProcessGroup _ = group()) {
      for (String header : List.of("Bearer " + SECRET, "bearer " + SECRET, basic("any", SECRET))) {
        for (String path : PATHS) {
          assertThat(send(port(), "GET", path, "Authorization", header).statusCode())
              .isEqualTo(200);
        }
      }
      String bearer = "Bearer " + SECRET;
      assertThat(send(port(), "GET", "/nothing", "Authorization", bearer).statusCode())
          .isEqualTo(404);
      assertThat(send(port(), "GET", "/status/x", "Authorization", bearer).statusCode())
          .isEqualTo(404);
      assertThat(send(port(), "POST", "/status", "Authorization", bearer).statusCode())
          .isEqualTo(405);
    }
  }

  @Test
  void beyondTheLoopbackAddressThereIsNoServerWithoutAToken() {
    try (ProcessGroup _ = provider.alone("TUTTI_DEBUG_PORT", "0", "TUTTI_DEBUG_HOST", "0.0.0.0")) {
      assertThat(said.records)
          .singleElement()
          .extracting(LogRecord::getMessage)
          .isEqualTo("rank 0/1: no debug server because TUTTI_TOKEN is not set");
    }
  }

  @Test
  void withoutATokenTheFirstBrowserThatOpensTheUrlIsAdmitted() throws Exception {
    try (ProcessGroup _ = provider.alone("TUTTI_DEBUG_PORT", "0")) {
      String end = (String) said.records.getLast().getParameters()[4];
      String path = end.replaceFirst(", a URL that can be opened once$", "");
      assertThat(path).matches("/\\?ticket=[0-9a-f]{64}");
      assertThat(send(port(), "GET", "/").statusCode()).isEqualTo(401);
      assertThat(send(port(), "GET", "/?ticket=" + "0".repeat(64)).statusCode()).isEqualTo(401);
      HttpResponse<String> first = send(port(), "GET", path);
      assertThat(first.statusCode()).isEqualTo(303);
      assertThat(first.headers().firstValue("Location")).contains("/");
      String cookie = first.headers().firstValue("Set-Cookie").orElseThrow();
      assertThat(cookie).endsWith("; HttpOnly; SameSite=Strict; Path=/");
      String own = cookie.substring(0, cookie.indexOf(';'));
      assertThat(send(port(), "GET", "/job", "Cookie", "a=b; " + own).statusCode()).isEqualTo(200);
      assertThat(send(port(), "GET", "/job", "Cookie", own + "0").statusCode()).isEqualTo(401);
      HttpResponse<String> second = send(port(), "GET", path);
      assertThat(second.statusCode()).isEqualTo(401);
      assertThat(second.body()).isEqualTo("open the URL with the ticket, which is valid once\n");
    }
  }

  @Test
  void propertiesOfTheProgramStayAsTheyAre() {
    try (ProcessGroup _ = group()) {
      assertThat(System.getProperties().stringPropertyNames())
          .noneMatch(name -> name.startsWith("sun.net.httpserver."));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"0.0.0.0", "::"})
  void beyondTheLoopbackAddressThereIsNoServerWithoutTls(String host) {
    try (ProcessGroup _ =
        provider.alone("TUTTI_DEBUG_PORT", "0", "TUTTI_TOKEN", TOKEN, "TUTTI_DEBUG_HOST", host)) {
      assertThat(said.all())
          .isEqualTo(
              "rank 0/1: no debug server at "
                  + host
                  + ": others could read its secret on the network; set TUTTI_TLS, or leave"
                  + " TUTTI_DEBUG_HOST at a loopback address");
    }
  }

  @Test
  void aPortThatIsTakenFailsNoGroup() throws Exception {
    try (ProcessGroup _ = group();
        ProcessGroup second =
            new ScriptedProvider().alone("TUTTI_DEBUG_PORT", "" + port(), "TUTTI_TOKEN", TOKEN)) {
      second.allReduce(Tensor.of(1f));
      assertThat(said.records.getLast().getMessage())
          .startsWith("rank 0/1: no debug server at 127.0.0.1:")
          .contains("java.net.BindException");
    }
  }

  @Test
  void itEndsWithTheGroup() throws Exception {
    group().close();
    int port = port();
    LocalWorld.until(
        "the port is closed",
        () -> {
          try (Socket _ = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return false;
          } catch (ConnectException e) {
            return true;
          } catch (IOException e) {
            return false;
          }
        });
  }

  @Test
  void eachPathShowsTheRank() throws Exception {
    try (ProcessGroup group = group()) {
      group.allReduce(Tensor.of(1f, 2f));
      assertThat(get(port(), "/status"))
          .startsWith("{\"rank\":0,\"size\":1,\"host\":\"")
          .contains("\"pid\":" + ProcessHandle.current().pid())
          .contains("\"state\":\"open\",\"failure\":\"\",\"issued\":1,\"pending\":[]");
      assertThat(get(port(), "/flight-record"))
          .startsWith("{\"version\":\"2.10\"")
          .contains("\"op\":\"allReduce\",\"seq\":1")
          .contains("\"input_sizes\":[[2]]");
      assertThat(get(port(), "/settings"))
          .contains("\"TUTTI_TOKEN\":{\"value\":\"(set, not shown)\"")
          .contains("\"TUTTI_DEBUG_PORT\":{\"value\":\"0\"")
          .contains("\"TUTTI_SLOW\":{\"value\":\"30s\"")
          .doesNotContain(TOKEN);
      assertThat(get(port(), "/")).contains("<script src=\"job.js\"", "href=\"job.css\"");
      assertThat(get(port(), "/job.js")).contains("fetch(location.origin + '/job')");
      assertThat(get(port(), "/job.css")).contains("border-collapse");
      assertThat(get(port(), "/job"))
          .startsWith("{\"verdict\":{")
          .contains("\"text\":\"healthy\"", "\"rank\":0,\"state\":\"alive\"");
    }
  }

  @Test
  void stacksHaveVirtualThreadsToo() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    Thread virtual = Thread.ofVirtual().name("waiting-virtually").start(() -> await(end));
    try (ProcessGroup _ = group()) {
      LocalWorld.until("it waits", () -> virtual.getState() == Thread.State.TIMED_WAITING);
      assertThat(get(port(), "/stacks"))
          .contains("\"waiting-virtually\" virtual")
          .contains("\"tutti-mon-0\"")
          .contains("DebugServerTest.await");
    } finally {
      end.countDown();
      virtual.join();
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void metricsCountOperationsFromTheFirstScrapeOn() throws Exception {
    try (ProcessGroup group = group()) {
      group.allReduce(Tensor.of(1f));
      assertThat(lines("/metrics"))
          .contains("tutti_collectives_total{rank=\"0\",group=\"0\"} 1")
          .contains("tutti_pending_operations{rank=\"0\",group=\"0\"} 0")
          .contains("tutti_group_failed{rank=\"0\",group=\"0\"} 0")
          .noneMatch(line -> line.startsWith("tutti_operations_total"));
      group.allReduce(Tensor.of(1f, 2f, 3f));
      group.allReduce(Tensor.of(1f));
      assertThat(lines("/metrics"))
          .contains("# TYPE tutti_operations_total counter")
          .contains("tutti_collectives_total{rank=\"0\",group=\"0\"} 3")
          .contains(
              "tutti_operations_total{rank=\"0\",group=\"0\",type=\"allReduce\",path=\"\","
                  + "state=\"COMPLETED\"} 2")
          .contains(
              "tutti_operation_bytes_total{rank=\"0\",group=\"0\",type=\"allReduce\",path=\"\","
                  + "state=\"COMPLETED\"} 16")
          .anyMatch(line -> line.matches("tutti_operation_seconds_total\\{.*} [0-9.E-]+"));
      group.abort("test");
      assertThat(lines("/metrics")).contains("tutti_group_failed{rank=\"0\",group=\"0\"} 1");
    }
  }

  private List<String> lines(String path) throws Exception {
    return get(port(), path).lines().toList();
  }

  @Test
  void aHungRankAnswersAndSaysInWhatItHangs() throws Exception {
    CountDownLatch end = new CountDownLatch(1);
    provider.allReduce = (_, _) -> assertThat(end.await(60, TimeUnit.SECONDS)).isTrue();
    try (ProcessGroup group = group()) {
      Thread caller = Thread.ofPlatform().name("hung").start(() -> group.allReduce(Tensor.of(1f)));
      LocalWorld.until("the call is issued", () -> group.sequenceNumber() == 1);
      LocalWorld.until(
          "it is seen",
          () -> {
            try {
              return get(port(), "/status")
                  .contains("\"pending\":[{\"operation\":\"allReduce\",\"number\":1,");
            } catch (Exception e) {
              throw new AssertionError(e);
            }
          });
      assertThat(lines("/metrics")).contains("tutti_pending_operations{rank=\"0\",group=\"0\"} 1");
      assertThat(get(port(), "/flight-record")).contains("\"state\":\"started\"");
      assertThat(get(port(), "/stacks")).contains("\"hung\"");
      end.countDown();
      caller.join();
    } finally {
      end.countDown();
    }
  }

  @Test
  void slowClientsHoldUpNeitherTheGroupNorOthersForLong() throws Exception {
    List<Socket> slow = new ArrayList<>();
    try (ProcessGroup group = group()) {
      for (int i = 0; i < 100; i++) {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), port());
        slow.add(socket);
        socket.getOutputStream().write("GET /status HTTP/1.1\r\nHost: a\r\nX: ".getBytes(UTF_8));
      }
      List<Work> works = new ArrayList<>();
      for (int i = 0; i < 1000; i++) {
        group.allReduce(Tensor.of(1f));
        works.add(group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.DEFAULT.withAsync()));
      }
      works.forEach(Work::await);
      assertThat(group.sequenceNumber()).isEqualTo(2000);
      LocalWorld.until("it answers again", () -> isAnswering());
      assertThat(get(port(), "/status")).contains("\"issued\":2000");
    } finally {
      for (Socket socket : slow) {
        socket.close();
      }
    }
  }

  private boolean isAnswering() {
    try {
      return send(port(), "GET", "/metrics", "Authorization", "Bearer " + SECRET).statusCode()
          == 200;
    } catch (Exception e) {
      return false;
    }
  }
}
