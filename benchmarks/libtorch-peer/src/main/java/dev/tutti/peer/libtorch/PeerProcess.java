package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * A {@link LibtorchPeer} in a process of its own, with a deadline on every wait.
 *
 * <p>No deadline starts before the process has loaded libtorch, which takes a second, or minutes if
 * its files must be unpacked or read from a slow disk. Lines may be sent while earlier ones run;
 * results come back in order. Only one thread at a time may send and await. When the process that
 * created it dies, the peer reads the end of its script and ends too.
 */
public final class PeerProcess implements AutoCloseable {
  private static final int KEPT_LINES = 200;
  private static final String END = "";
  private static final Duration LOAD_LIMIT = Duration.ofMinutes(15);
  private static boolean prepared;

  private final Process process;
  private boolean keepsGoing;
  private final Writer script;
  private final BlockingQueue<String> results = new LinkedBlockingQueue<>();
  private final CompletableFuture<Void> loaded = new CompletableFuture<>();
  private final CompletableFuture<Integer> port = new CompletableFuture<>();
  private final CompletableFuture<Void> ready = new CompletableFuture<>();
  private final Deque<String> log = new ArrayDeque<>();

  private PeerProcess(Process process) {
    this.process = process;
    this.script = process.outputWriter(UTF_8);
    Thread reader = new Thread(this::read, "peer-output-" + process.pid());
    reader.setDaemon(true);
    reader.start();
  }

  /**
   * Starts a peer, and waits until libtorch is loaded.
   *
   * @param arguments its options
   * @return the running process
   * @throws IllegalStateException if {@link LibtorchClasspath#unsupportedReason} gives a reason, or
   *     if libtorch is not loaded within a quarter of an hour
   */
  public static PeerProcess start(PeerArguments arguments) {
    return load(1).getFirst().open(arguments);
  }

  /**
   * Starts processes that load libtorch, all at once, and waits until all have loaded it.
   *
   * <p>They use the default cache directory, and one OpenMP thread each.
   *
   * @param count how many
   * @return the processes, each of which {@link #open} makes a peer
   * @throws IllegalStateException if {@link LibtorchClasspath#unsupportedReason} gives a reason, or
   *     if libtorch is not loaded within a quarter of an hour
   */
  public static List<PeerProcess> load(int count) {
    List<PeerProcess> all = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        all.add(new PeerProcess(startProcess()));
      }
      for (PeerProcess process : all) {
        process.get(process.loaded, LOAD_LIMIT, "the end of loading libtorch");
      }
      return all;
    } catch (Throwable failure) {
      all.forEach(PeerProcess::close);
      throw failure;
    }
  }

  /**
   * Loads libtorch in a separate process, unless this process has already done so, and prints how
   * long it took: later processes find the libraries unpacked, and mostly in memory.
   *
   * <p>Tests call it outside of what their timeouts bound.
   *
   * @throws IllegalStateException as {@link #load}
   */
  public static synchronized void prepare() {
    if (prepared) {
      return;
    }
    Path cache = LibtorchClasspath.defaultCacheDirectory();
    boolean unpacks = !Files.exists(LibtorchLoader.marker(cache));
    if (unpacks) {
      System.out.println("libtorch: unpacking 445 MB into " + cache + ", once for all builds");
    }
    long start = System.nanoTime();
    load(1).forEach(PeerProcess::close);
    System.out.printf(
        "libtorch: %s in %.1f s%n",
        unpacks ? "unpacked and loaded" : "loaded", (System.nanoTime() - start) / 1e9);
    prepared = true;
  }

  private static Process startProcess() {
    List<String> command =
        LibtorchClasspath.command(
            LibtorchPeer.class,
            LibtorchClasspath.defaultCacheDirectory(),
            List.of(LibtorchPeer.HOLD));
    // A peer mostly loads and ends, so code that C2 compiles never pays off.
    command.addAll(1, List.of("-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectErrorStream(true);
    builder.environment().put("OMP_NUM_THREADS", "1");
    try {
      return builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Turns this process, started by {@link #load}, into a peer.
   *
   * @param arguments its options
   * @return this process
   */
  public PeerProcess open(PeerArguments arguments) {
    keepsGoing = arguments.keepGoing();
    send(String.join("\t", arguments.toCommandLine()));
    return this;
  }

  /**
   * Waits for the port of the TCP store that this peer hosts.
   *
   * @param deadline how long to wait
   * @return the port
   * @throws IllegalStateException if the peer ends or the time passes first; the message holds the
   *     peer's output
   */
  public int awaitPort(Duration deadline) {
    return get(port, deadline, "the port of its store");
  }

  /**
   * Waits until the peer's group is set up.
   *
   * @param deadline how long to wait
   * @throws IllegalStateException if the peer ends or the time passes first; the message holds the
   *     peer's output
   */
  public void awaitReady(Duration deadline) {
    get(ready, deadline, "its group");
  }

  /**
   * Sends lines of the script.
   *
   * @param lines operations as {@link LibtorchPeer} lists them
   * @throws UncheckedIOException if the peer is gone
   */
  public void send(String... lines) {
    try {
      for (String line : lines) {
        script.write(line);
        script.write('\n');
      }
      script.flush();
    } catch (IOException e) {
      throw new UncheckedIOException("the peer accepts no more lines: " + log(), e);
    }
  }

  /**
   * Waits for the next result, which may be an error.
   *
   * @param deadline how long to wait
   * @return the result
   * @throws IllegalStateException if the peer ends or the time passes first; the message holds the
   *     peer's output
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
   * Sends lines and waits for the result of each.
   *
   * @param deadline how long to wait in all
   * @param lines operations, without comments and empty lines
   * @return one result per line, or fewer if the last is an error after which the peer exits
   * @throws IllegalStateException if the peer ends or the time passes first; the message holds the
   *     peer's output
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
   * Waits for the process to end.
   *
   * @param deadline how long to wait
   * @return its exit status: 0, 3 after an error, 4 when libtorch hung
   * @throws IllegalStateException if the time passes first
   */
  public int awaitExit(Duration deadline) {
    return get(process.onExit().thenApply(Process::exitValue), deadline, "its end");
  }

  /**
   * Returns the process, to signal it or to read its id.
   *
   * @return the process
   */
  public ProcessHandle handle() {
    return process.toHandle();
  }

  /**
   * Returns the last lines of the peer's output, results and log together.
   *
   * @return at most 200 lines
   */
  public String log() {
    synchronized (log) {
      return String.join("\n", log);
    }
  }

  /** Kills the process if it is still running and waits up to a minute for its end. */
  @Override
  public void close() {
    process.destroyForcibly();
    awaitExit(Duration.ofSeconds(60));
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
      loaded.completeExceptionally(ended);
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
    } else if (text.equals("LOADED")) {
      loaded.complete(null);
    } else if (text.startsWith("PORT ")) {
      port.complete(Integer.valueOf(text.substring(5)));
    } else if (text.startsWith("READY ")) {
      ready.complete(null);
    }
  }
}
