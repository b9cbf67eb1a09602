import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.store.JobToken;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;

/**
 * Times all-reduces of 4 bytes while clients watch: {@code Watching CALLS ROUNDS} runs on each
 * rank; {@code Watching KIND PORT} runs the clients, which rank 0 starts.
 */
public class Watching {
  private static final int CLIENTS = 64;

  /**
   * What the clients do to the job in the meantime; SCRAPE comes last, since it leaves a listener.
   */
  private enum Kind {
    NOBODY,
    RECORDING,
    STATUS,
    STRANGERS,
    SLOW_CLIENTS,
    CLIENTS_OF_STATUS,
    SCRAPE
  }

  private static final List<Kind> IN_TURNS =
      Arrays.stream(Kind.values()).filter(kind -> kind != Kind.SCRAPE).toList();

  public static void main(String[] args) throws Exception {
    if (System.getenv("RANK") == null) {
      clients(Kind.valueOf(args[0]), Integer.parseInt(args[1]));
      return;
    }
    int calls = Integer.parseInt(args[0]);
    int rounds = Integer.parseInt(args[1]);
    try (ProcessGroup group = ProcessGroup.init()) {
      Map<Kind, double[]> means = new EnumMap<>(Kind.class);
      for (List<Kind> turns : List.of(IN_TURNS, List.of(Kind.SCRAPE))) {
        for (int round = 0; round < rounds; round++) {
          for (Kind kind : turns) {
            double mean = time(group, kind, calls);
            means.computeIfAbsent(kind, _ -> new double[rounds])[round] = mean;
          }
        }
      }
      if (group.rank() == 0) {
        means.forEach(Watching::print);
      }
    }
  }

  private static void print(Kind kind, double[] means) {
    double[] sorted = means.clone();
    Arrays.sort(sorted);
    System.out.printf(
        "{\"watched_by\": \"%s\", \"us\": %.2f, \"least_us\": %.2f, \"most_us\": %.2f}%n",
        kind, sorted[sorted.length / 2], sorted[0], sorted[sorted.length - 1]);
  }

  /** Returns the mean time of a call in µs, after as many untimed calls. */
  private static double time(ProcessGroup group, Kind kind, int calls) throws Exception {
    Tensor tensor = Tensor.of(0f);
    Process process = group.rank() == 0 ? start(kind) : null;
    group.barrier();
    try (Recording recording = kind == Kind.RECORDING ? new Recording() : null) {
      if (recording != null) {
        recording.start();
      }
      for (int i = 0; i < calls; i++) {
        group.allReduce(tensor);
      }
      long start = System.nanoTime();
      for (int i = 0; i < calls; i++) {
        group.allReduce(tensor);
      }
      return (System.nanoTime() - start) / 1e3 / calls;
    } finally {
      if (process != null) {
        process.toHandle().destroy(); // leaves its output open
        process.waitFor();
      }
      group.barrier();
    }
  }

  private static Process start(Kind kind) throws IOException {
    if (kind == Kind.NOBODY || kind == Kind.RECORDING) {
      return null;
    }
    List<String> command = new ArrayList<>();
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    if (kind == Kind.STATUS) {
      String store = "tcp://127.0.0.1:" + System.getenv("MASTER_PORT");
      command.addAll(List.of("dev.tutti.cli.Main", "status", "--watch", "--at", store));
    } else {
      command.addAll(List.of("Watching", kind.name(), System.getenv("TUTTI_DEBUG_PORT")));
    }
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().remove("RANK");
    Process process = builder.start();
    if (process.getInputStream().read() < 0) { // waits for its first output
      throw new IOException(command + " ended");
    }
    Thread.ofPlatform().daemon().start(() -> drain(process));
    return process;
  }

  private static void drain(Process process) {
    try {
      byte[] last = process.getInputStream().readAllBytes();
      String text = new String(last, StandardCharsets.UTF_8);
      if (text.contains("answers")) {
        System.out.print(text);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void clients(Kind kind, int port) throws InterruptedException {
    LongAdder answers = new LongAdder();
    Runtime.getRuntime()
        .addShutdownHook(new Thread(() -> System.out.println(kind + ": " + answers + " answers")));
    int count = kind == Kind.SCRAPE ? 1 : CLIENTS;
    CountDownLatch begun = new CountDownLatch(count);
    HttpClient client = HttpClient.newHttpClient();
    for (int i = 0; i < count; i++) {
      Thread.ofPlatform().start(() -> client(client, kind, port, answers, begun));
    }
    System.out.println(begun.await(30, TimeUnit.SECONDS) ? "started" : "started late");
  }

  private static void client(
      HttpClient client, Kind kind, int port, LongAdder answers, CountDownLatch begun) {
    String path = kind == Kind.SCRAPE ? "/metrics" : "/status";
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    if (kind != Kind.STRANGERS) {
      request.header("Authorization", "Bearer " + JobToken.fromEnvironment().debugSecret());
    }
    while (true) {
      try {
        if (kind == Kind.SLOW_CLIENTS) {
          dawdle(port, begun);
        } else {
          client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        }
        answers.increment();
        begun.countDown();
      } catch (IOException | InterruptedException e) {
        LockSupport.parkNanos(1_000_000);
      }
      if (kind == Kind.SCRAPE) {
        LockSupport.parkNanos(1_000_000_000);
      }
    }
  }

  /** Sends a request byte by byte until the server closes the connection. */
  private static void dawdle(int port, CountDownLatch begun) throws IOException {
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      begun.countDown();
      String head = "GET /status HTTP/1.1\r\nHost: localhost\r\nX: ";
      byte[] bytes = head.getBytes(StandardCharsets.US_ASCII);
      for (int i = 0; ; i++) {
        socket.getOutputStream().write(bytes[Math.min(i, bytes.length - 1)]);
        LockSupport.parkNanos(50_000_000);
      }
    }
  }
}
