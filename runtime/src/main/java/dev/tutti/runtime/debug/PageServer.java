package dev.tutti.runtime.debug;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import dev.tutti.json.Json;
import dev.tutti.runtime.view.JobPage;
import dev.tutti.runtime.view.JobView;
import dev.tutti.spi.Time;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import org.jspecify.annotations.Nullable;

/** A server over HTTP or HTTPS that shows pages to clients that have access. */
public final class PageServer implements AutoCloseable {
  /*
   * Every resource that clients can use up is bounded: the connections, the threads that read
   * requests and write answers, and the time for both. Clients beyond these limits are turned away.
   * One answer is made at a time. The limits on time and connections are the JDK's own. It
   * reads them once, when it makes its first HTTP server: during that time they are set, unless the
   * program has set them.
   */
  private static final int THREADS = 32;
  private static final int IDLE_SECONDS = 5;
  private static final Map<String, String> LIMITS =
      Map.of(
          "sun.net.httpserver.maxReqTime", "5",
          "sun.net.httpserver.maxRspTime", "20",
          "sun.net.httpserver.idleInterval", "10",
          "jdk.httpserver.maxConnections", "128");

  private static final System.Logger LOG = System.getLogger(PageServer.class.getName());
  public static final String TEXT = "text/plain; charset=utf-8";
  public static final String JSON = "application/json";

  private final HttpServer server;
  private final ThreadPoolExecutor threads;
  private final PageAccess access;
  private final Object turn = new Object();
  private final String who;
  private final WrongSecrets wrong;
  private final LimitedLog warnings;

  private PageServer(
      HttpServer server, ThreadPoolExecutor threads, PageAccess access, String who, Time time) {
    this.server = server;
    this.threads = threads;
    this.access = access;
    this.who = who;
    this.wrong = new WrongSecrets(time);
    this.warnings = new LimitedLog(LOG, time);
  }

  /**
   * Creates a server, which serves once it is started.
   *
   * @param address the address to listen on; port 0 picks a free one
   * @param access which clients may read
   * @param tls the context that encrypts connections; null for plain HTTP
   * @param name the start of the names of the server's threads
   * @param who who serves, for the log
   * @param time starts the threads, and limits how often wrong secrets are presented
   * @throws IOException if the server cannot listen on the address
   */
  public static PageServer create(
      InetSocketAddress address,
      PageAccess access,
      @Nullable SSLContext tls,
      String name,
      String who,
      Time time)
      throws IOException {
    HttpServer server = withLimits(address, tls);
    AtomicInteger number = new AtomicInteger();
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            0,
            THREADS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            task -> time.unstarted(name + "-" + number.getAndIncrement(), task));
    server.setExecutor(threads);
    return new PageServer(server, threads, access, who, time);
  }

  private static HttpServer withLimits(InetSocketAddress address, @Nullable SSLContext tls)
      throws IOException {
    synchronized (LIMITS) {
      List<String> set =
          LIMITS.keySet().stream().filter(name -> System.getProperty(name) == null).toList();
      set.forEach(name -> System.setProperty(name, LIMITS.getOrDefault(name, "")));
      try {
        return tls == null ? HttpServer.create(address, 0) : encrypted(address, tls);
      } finally {
        set.forEach(System::clearProperty);
      }
    }
  }

  /** Starts serving the pages that were added. */
  public void start() {
    // The server's own thread keeps the JVM alive unless a daemon starts it.
    CompletableFuture.runAsync(server::start, threads).join();
  }

  private static HttpServer encrypted(InetSocketAddress address, SSLContext tls)
      throws IOException {
    HttpsServer server = HttpsServer.create(address, 0);
    server.setHttpsConfigurator(
        new HttpsConfigurator(tls) {
          @Override
          public void configure(HttpsParameters parameters) {
            parameters.setSSLParameters(
                new SSLParameters(null, new String[] {TlsSettings.PROTOCOL}));
          }
        });
    return server;
  }

  /**
   * Adds the page of a job.
   *
   * @param job returns the job; called by any thread
   */
  public void addJob(Supplier<JobView> job) {
    add("/", "text/html; charset=utf-8", () -> JobPage.file("job.html"));
    add("/job.js", "text/javascript", () -> JobPage.file("job.js"));
    add("/job.css", "text/css", () -> JobPage.file("job.css"));
    add("/job", JSON, () -> Json.write(job.get().toMap()));
  }

  /**
   * Adds a page.
   *
   * @param path its path in URLs
   * @param type its media type
   * @param content makes the text of an answer; called by any thread
   */
  public void add(String path, String type, Callable<String> content) {
    server.createContext(path, exchange -> answer(exchange, path, type, content));
  }

  private void answer(HttpExchange exchange, String path, String type, Callable<String> content)
      throws IOException {
    try (exchange) {
      exchange.getResponseHeaders().set("Cache-Control", "no-store");
      exchange.getResponseHeaders().set("X-Content-Type-Options", "nosniff");
      if (!isAdmitted(exchange)) {
        return;
      }
      if (!exchange.getRequestMethod().equals("GET") && !isHead(exchange)) {
        exchange.getResponseHeaders().set("Allow", "GET, HEAD");
        send(exchange, 405, TEXT, "only GET and HEAD are supported\n");
      } else if (!exchange.getRequestURI().getPath().equals(path)) {
        send(exchange, 404, TEXT, "no such page\n");
      } else {
        answer(exchange, type, content);
      }
    }
  }

  /** Returns whether a request presents the token; answers it if it does not. */
  private boolean isAdmitted(HttpExchange exchange) throws IOException {
    String authorization = exchange.getRequestHeaders().getFirst("Authorization");
    String address = exchange.getRemoteAddress().getAddress().getHostAddress();
    long pause = 0;
    String cookie = access.takeTicket(exchange.getRequestURI().getQuery(), port());
    if (cookie != null) {
      exchange.getResponseHeaders().set("Set-Cookie", cookie);
      exchange.getResponseHeaders().set("Location", "/");
      send(exchange, 303, TEXT, "");
      return false;
    }
    if (access.accepts(exchange.getRequestHeaders().getOrDefault("Cookie", List.of()), port())) {
      return true;
    }
    if (authorization != null) {
      synchronized (wrong) {
        pause = wrong.pauseNanos(address);
        if (pause == 0 && access.accepts(authorization)) {
          return true;
        }
        if (pause == 0) {
          wrong.add(address);
        }
      }
      warnings.warn(
          "token",
          address,
          who + ": a client at " + address + " presented a wrong secret to the debug server");
    }
    if (pause > 0) {
      long seconds = 1 + TimeUnit.NANOSECONDS.toSeconds(pause);
      exchange.getResponseHeaders().set("Retry-After", Long.toString(seconds));
      send(
          exchange,
          429,
          TEXT,
          "too many wrong secrets from this address; try again in " + seconds + " s\n");
    } else {
      exchange.getResponseHeaders().set("WWW-Authenticate", "Basic realm=\"tutti\"");
      send(exchange, 401, TEXT, access.refusal());
    }
    return false;
  }

  private static boolean isHead(HttpExchange exchange) {
    return exchange.getRequestMethod().equals("HEAD");
  }

  private void answer(HttpExchange exchange, String type, Callable<String> content)
      throws IOException {
    String text;
    try {
      synchronized (turn) {
        text = content.call();
      }
    } catch (Exception | LinkageError e) {
      send(exchange, 500, TEXT, e + "\n");
      return;
    }
    exchange.getResponseHeaders().set("Content-Security-Policy", "default-src 'self'");
    send(exchange, 200, type, text);
  }

  private static void send(HttpExchange exchange, int code, String type, String text)
      throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
    if (isHead(exchange)) {
      exchange.getResponseHeaders().set("Content-Length", Integer.toString(bytes.length));
      exchange.sendResponseHeaders(code, -1);
    } else {
      exchange.sendResponseHeaders(code, bytes.length == 0 ? -1 : bytes.length);
      exchange.getResponseBody().write(bytes);
    }
  }

  /** Returns the port on which the server listens. */
  public int port() {
    return server.getAddress().getPort();
  }

  /** Stops the server at once; requests in progress are cut off. */
  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
    warnings.close();
  }
}
