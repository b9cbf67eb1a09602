package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A {@link LibtorchPeer} in a process of its own, with a deadline on every wait.
 *
 * <p>Lines may be sent while earlier ones run; results come back in order. One thread at a time
 * sends and awaits. When the process that made it dies, the peer reads the end of its script and
 * ends too.
 */
public final class PeerProcess implements AutoCloseable {
  private static final int KEPT_LINES = 200;
  private static final String END = "";

  private final Process process;
  private final boolean keepsGoing;
  private final Writer script;
  private final BlockingQueue<String> results = new LinkedBlockingQueue<>();
  private final CompletableFuture<Integer> port = new CompletableFuture<>();
  private final CompletableFuture<Void> ready = new CompletableFuture<>();
  private final Deque<String> log = new ArrayDeque<>();

  private PeerProcess(Process process, boolean keepsGoing) {
    this.process = process;
    this.keepsGoing = keepsGoing;
    this.script = process.outputWriter(UTF_8);
    Thread reader = new Thread(this::read, "peer-output-" + process.pid());
    reader.setDaemon(true);
    reader.start();
  }

  /**
   * Start a peer with the default cache directory and one OpenMP thread.
   *
   * @param arguments its options
   * @return the running process
   * @throws IllegalStateException when {@link LibtorchClasspath#unsupportedReason} gives a reason
   */
  public static PeerProcess start(PeerArguments arguments) {
    return start(arguments, Map.of());
  }

  /**
   * Start a peer.
   *
   * @param arguments its options
   * @param environment variables set beside those of this process, such as {@code
   *     GLOO_ENABLE_STORE_V2_API}
   * @return the running process
   * @throws IllegalStateException when {@link LibtorchClasspath#unsupportedReason} gives a reason
   */
  public static PeerProcess start(PeerArguments arguments, Map<String, String> environment) {
    List<String> command =
        LibtorchClasspath.command(
            LibtorchPeer.class,
            LibtorchClasspath.defaultCacheDirectory(),
            arguments.toCommandLine());
    // A peer mostly loads and ends: what C2 compiles never pays.
    command.add(1, "-XX:TieredStopAtLevel=1");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectErrorStream(true);
    builder.environment().put("OMP_NUM_THREADS", "1");
    builder.environment().putAll(environment);
    try {
      return new PeerProcess(builder.start(), arguments.keepGoing());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Wait for the port of the TCP store this peer hosts.
   *
   * @param deadline how long to wait
   * @return the port
   * @throws IllegalStateException when the peer ends or the time passes first; the message holds
   *     the peer's output
   */
  public int awaitPort(Duration deadline) {
    return get(port, deadline, "the port of its store");
  }

  /**
   * Wait until the peer's group stands.
   *
   * @param deadline how long to wait
   * @throws IllegalStateException when the peer ends or the time passes first; the message holds
   *     the peer's output
   */
  public void awaitReady(Duration deadline) {
    get(ready, deadline, "its group");
  }

  /**
   * Send lines of the script.
   *
   * @param lines operations as {@link LibtorchPeer} lists them
   * @throws UncheckedIOException when the peer is gone
   */
  public void send(String... lines) {
    try {
      for (String line : lines) {
        script.write(line);
        script.write('\n');
      }
      script.flush();
    } catch (IOException e) {
      throw new UncheckedIOException("the peer takes no more lines: " + log(), e);
    }
  }

  /**
   * Wait for the next result, which may be an error.
   *
   * @param deadline how long to wait
   * @return the result
   * @throws IllegalStateException when the peer ends or the time passes first; the message holds
   *     the peer's output
   */
  public PeerResult await(Duration deadline) {
    try {
      String text = results.poll(deadline.toNanos(), TimeUnit.NANOSECONDS);
      if (text == null) {
        throw new IllegalStateException(
            "the peer reported nothing within " + deadline + ": " + log());
      }
      if (text.equals(END)) {
        results.add(END);
        throw new IllegalStateException("the peer ended: " + log());
      }
      return PeerResult.parse(text);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for the peer", e);
    }
  }

  /**
   * Send lines and wait for the result of each.
   *
   * @param deadline how long to wait in all
   * @param lines operations, without comments and empty lines
   * @return one result per line, or fewer when the last is an error after which the peer exits
   * @throws IllegalStateException when the peer ends or the time passes first; the message holds
   *     the peer's output
   */
  public List<PeerResult> run(Duration deadline, String... lines) {
    long end = System.nanoTime() + deadline.toNanos();
    send(lines);
    List<PeerResult> all = new ArrayList<>();
    while (all.size() < lines.length) {
      PeerResult result = await(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
      all.add(result);
      if (!result.ok() && !keepsGoing) {
        break;
      }
    }
    return all;
  }

  /**
   * Wait for the process to end.
   *
   * @param deadline how long to wait
   * @return its exit status: 0, 3 after an error, 4 when libtorch hung
   * @throws IllegalStateException when the time passes first
   */
  public int awaitExit(Duration deadline) {
    return get(process.onExit().thenApply(Process::exitValue), deadline, "its end");
  }

  /**
   * Return the process, to signal it or to read its id.
   *
   * @return the process
   */
  public ProcessHandle handle() {
    return process.toHandle();
  }

  /**
   * Return the last lines of the peer's output, results and log together.
   *
   * @return at most 200 lines
   */
  public String log() {
    synchronized (log) {
      return String.join("\n", log);
    }
  }

  /** Kill the process if it still runs and wait up to ten seconds for its end. */
  @Override
  public void close() {
    process.destroyForcibly();
    awaitExit(Duration.ofSeconds(10));
  }

  private <T> T get(CompletableFuture<T> future, Duration deadline, String what) {
    try {
      return future.get(deadline.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      throw new IllegalStateException(
          "the peer did not reach " + what + " within " + deadline + ": " + log(), e);
    } catch (ExecutionException e) {
      throw new IllegalStateException("the peer ended before " + what + ": " + log(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while waiting for the peer", e);
    }
  }

  private void read() {
    try (BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String text = out.readLine(); text != null; text = out.readLine()) {
        take(text);
      }
    } catch (IOException e) {
      take("output lost: " + e);
    } finally {
      IllegalStateException ended = new IllegalStateException("end of output");
      port.completeExceptionally(ended);
      ready.completeExceptionally(ended);
      results.add(END);
    }
  }

  private void take(String text) {
    synchronized (log) {
      if (log.size() == KEPT_LINES) {
        log.removeFirst();
      }
      log.addLast(text);
    }
    if (PeerResult.isResult(text)) {
      results.add(text);
    } else if (text.startsWith("PORT ")) {
      port.complete(Integer.valueOf(text.substring(5)));
    } else if (text.startsWith("READY ")) {
      ready.complete(null);
    }
  }
}
