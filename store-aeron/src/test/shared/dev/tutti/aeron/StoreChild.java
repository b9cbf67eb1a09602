package dev.tutti.aeron;

import dev.tutti.GroupListener;
import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.TuttiException;
import dev.tutti.spi.Wills;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * A child process: a server, or a client that waits for a key. It prints READY and its port, then
 * how its call ended.
 */
public final class StoreChild implements AutoCloseable {
  private static final int SECONDS = 240;
  private static final Set<String> OWN = Set.of("HOST", "MEMBERS", "DATA", "FIRST", "COUNT", "ALL");

  private final Process process;
  private final BufferedReader output;

  private StoreChild(Process process) {
    this.process = process;
    this.output = process.inputReader(StandardCharsets.UTF_8);
  }

  public static void main(String[] args) throws IOException {
    AeronStoreOptions options = AeronStoreOptions.of(host(), Integer.parseInt(args[1]));
    if (args[0].equals("serve")) {
      try (AeronStoreServer server = new AeronStoreServer(options)) {
        System.out.println("READY " + server.port());
        System.in.read();
      }
      return;
    }
    if (args[0].equals("clients")) {
      clients(options);
      return;
    }
    if (args[0].equals("rank")) {
      rank();
      return;
    }
    try (Store store = new AeronStore(options)) {
      runClient(args[0], store);
    }
  }

  /** Runs a client that waits for a key. */
  public static void runClient(String role, Store store) {
    if (role.equals("will")) {
      Wills.leave(store, "will/", "gone".getBytes(StandardCharsets.UTF_8));
      Wills.leave(store.duplicate(), "will/", "both".getBytes(StandardCharsets.UTF_8));
    }
    if (role.equals("large")) {
      store.set("large", new byte[Integer.parseInt(System.getenv("COUNT"))]);
    }
    store.add("here", 1);
    System.out.println("READY " + (store instanceof AeronStore own && own.isShared()));
    try {
      if (role.equals("barrier")) {
        store.barrier("barrier", 2, store.timeout());
      } else {
        store.await(List.of("go"));
      }
      System.out.println("DONE");
    } catch (RuntimeException e) {
      System.out.println("FAILED " + e);
    }
  }

  /**
   * Runs many clients, each with its own session, which meet the clients of the other processes.
   */
  private static void clients(AeronStoreOptions options) {
    int first = Integer.parseInt(System.getenv("FIRST"));
    int count = Integer.parseInt(System.getenv("COUNT"));
    int all = Integer.parseInt(System.getenv("ALL"));
    Duration limit = Duration.ofSeconds(200); // the other processes may start much later
    List<Thread> threads = new ArrayList<>();
    AtomicInteger right = new AtomicInteger();
    for (int i = 0; i < count; i++) {
      int client = first + i;
      // Stores of one process share a session unless their options differ.
      AeronStoreOptions own =
          options.withTimeout(limit).withLease(options.lease().plusMillis(client));
      threads.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    try (AeronStore store = new AeronStore(own)) {
                      store.set("key" + client, "value" + client);
                      store.add("count", 1);
                      store.queuePush("queue", new byte[] {1});
                      int next = (client + 1) % all;
                      String there =
                          new String(store.get("key" + next, limit), StandardCharsets.UTF_8);
                      store.barrier("all", all, limit);
                      boolean ok =
                          there.equals("value" + next)
                              && store.add("count", 0) == all
                              && store.queuePop("queue", limit).length == 1
                              && store.isShared();
                      right.addAndGet(ok ? 1 : 0);
                      store.barrier("done", all, limit);
                    }
                  }));
    }
    for (Thread thread : threads) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    System.out.println("RIGHT " + right);
  }

  private static String host() {
    return System.getenv().getOrDefault("HOST", "127.0.0.1");
  }

  /** Joins a group configured by the environment, and reports if that fails. */
  private static void rank() throws IOException {
    try (ProcessGroup group = ProcessGroup.init()) {
      group.addListener(
          new GroupListener() {
            @Override
            public void failed(TuttiException cause) {
              System.out.println("ABORTED " + cause.getMessage());
            }
          });
      System.out.println("READY " + group.rank());
      System.in.read();
    }
    System.out.println("CLOSED");
  }

  /**
   * Starts a process.
   *
   * @param role one of serve, wait, will, large, barrier, clients, or rank
   * @param port the port of the server, 0 for a free one
   * @param environment additional variables, as NAME=VALUE
   */
  public static StoreChild start(String role, int port, String... environment) throws IOException {
    return start(StoreChild.class, List.of(), "128m", role, port, environment);
  }

  /**
   * Starts a process with a command that runs another command; HOST in the environment names the
   * host.
   *
   * @param heap the heap size, as -Xmx takes it
   */
  public static StoreChild start(
      List<String> by, String heap, String role, int port, String... environment)
      throws IOException {
    return start(StoreChild.class, by, heap, role, port, environment);
  }

  /** Starts a process with another main class. */
  public static StoreChild start(
      Class<?> main, List<String> by, String heap, String role, int port, String... environment)
      throws IOException {
    List<String> command = new ArrayList<>(by);
    command.add(ProcessHandle.current().info().command().orElseThrow());
    command.addAll(
        List.of("-Xmx" + heap, "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-XX:+UseSerialGC"));
    command.addAll(List.of("--add-exports", "java.base/jdk.internal.misc=ALL-UNNAMED", "-cp"));
    command.add(ManagementFactory.getRuntimeMXBean().getClassPath());
    command.addAll(List.of(main.getName(), role, Integer.toString(port)));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.redirectError(ProcessBuilder.Redirect.INHERIT);
    builder
        .environment()
        .keySet()
        .removeIf(name -> name.startsWith("TUTTI_") || OWN.contains(name));
    for (String variable : environment) {
      String[] parts = variable.split("=", 2);
      builder.environment().put(parts[0], parts[1]);
    }
    return new StoreChild(builder.start());
  }

  /** Reads the next line that the process prints. */
  public String line() throws Exception {
    // On a thread of its own: a shared pool may have a single thread, which waits for another line.
    return CompletableFuture.supplyAsync(
            () -> {
              try {
                return String.valueOf(output.readLine());
              } catch (IOException e) {
                return e.toString();
              }
            },
            task -> Thread.ofPlatform().daemon().start(task))
        .get(SECONDS, TimeUnit.SECONDS);
  }

  /** Lets a process end that is a server or a rank. */
  public void end() throws IOException {
    process.getOutputStream().close();
  }

  /** Ends the process at once, as kill -9 does. */
  public void kill() throws InterruptedException {
    process.destroyForcibly().waitFor(SECONDS, TimeUnit.SECONDS);
  }

  /** Returns whether the process has not ended. */
  public boolean isAlive() {
    return process.isAlive();
  }

  /** Sends a signal such as STOP or CONT. */
  public void signal(String name) throws Exception {
    new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).start().waitFor();
  }

  /** Stops the process for a while. */
  public void pause(long nanos) throws Exception {
    pause(nanos, this);
  }

  /** Stops processes for a while, all at the same time. */
  public static void pause(long nanos, StoreChild... processes) throws Exception {
    for (StoreChild process : processes) {
      process.signal("STOP");
    }
    long end = System.nanoTime() + nanos;
    while (end - System.nanoTime() > 0) {
      LockSupport.parkNanos(end - System.nanoTime());
    }
    for (StoreChild process : processes) {
      process.signal("CONT");
    }
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    try {
      process.waitFor(SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    output.close();
  }
}
