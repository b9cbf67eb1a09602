package dev.tutti.cli.strangers;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A process with a {@link StrangersJob}, its ports, and what it holds. */
final class Target implements AutoCloseable {
  private static final String LISTENS = "0A";

  final Kind kind;
  private final Path log;
  private final Process process;
  private final BufferedReader answers;
  private final BufferedWriter orders;

  /** A kind of target, and the memory that its process may have. */
  enum Kind {
    TCP("two servers of a `TcpStore`, and a client of each", 64, 320),
    GLOO("three ranks on *gloo*, and the server of their `TcpStore`", 64, 320),
    AERON("two servers of an `AeronStore` over UDP, and a client of each", 64, 512),
    CLUSTER("three members of a cluster, and a client", 160, 1200);

    private final int heapMebibytes;
    private final String what;
    final int mebibytes;

    Kind(String what, int heapMebibytes, int mebibytes) {
      this.what = what;
      this.heapMebibytes = heapMebibytes;
      this.mebibytes = mebibytes;
    }

    /** Returns the row of this kind in docs/security.md. */
    String row() {
      return String.format(
          Locale.ROOT, "| %s | %d MiB | %,d MiB |", what, heapMebibytes, mebibytes);
    }
  }

  /**
   * What the job has checked so far.
   *
   * @param mebibytes the most memory that was resident, files in memory that are mapped included
   */
  record Report(long checked, long wrong, long mebibytes) {}

  /**
   * Starts a process.
   *
   * @param folder a folder for its files and its log
   * @param members the members of a cluster
   */
  Target(Kind kind, Path folder, String members) throws IOException {
    this.kind = kind;
    this.log = folder.resolve(kind + ".log");
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx%dm".formatted(kind.heapMebibytes),
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow",
            "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
            "-cp",
            absolute(ManagementFactory.getRuntimeMXBean().getClassPath()),
            StrangersJob.class.getName(),
            kind.name(),
            folder.toString(),
            members);
    process = builder.redirectError(log.toFile()).start();
    answers =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    orders =
        new BufferedWriter(
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
    if (!"ready".equals(answers.readLine())) {
      throw died();
    }
  }

  private static String absolute(String paths) {
    return Stream.of(paths.split(File.pathSeparator, -1))
        .map(path -> Path.of(path).toAbsolutePath().toString())
        .collect(Collectors.joining(File.pathSeparator));
  }

  /** Gives the job an order. */
  void order(String line) throws IOException {
    orders.write(line);
    orders.newLine();
    orders.flush();
  }

  /** Waits for the job's report of its round. */
  Report report() throws IOException {
    String line = answers.readLine();
    if (line == null) {
      throw died();
    }
    String[] words = line.split(" ", -1);
    if (!"true".equals(words[2])) {
      throw new IllegalStateException(kind + ": a server has ended; see " + log);
    }
    return new Report(Long.parseLong(words[0]), Long.parseLong(words[1]), peakMebibytes());
  }

  private IllegalStateException died() {
    return new IllegalStateException(kind + ": the job died; see " + log);
  }

  boolean isAlive() {
    return process.isAlive();
  }

  private long peakMebibytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc", pid(), "status"))) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) >> 10;
      }
    }
    throw new IllegalStateException("no VmHWM of " + pid());
  }

  private String pid() {
    return Long.toString(process.pid());
  }

  /** Returns the ports on which the process listens now; for UDP, those that it has bound. */
  Set<Integer> ports(String protocol) throws IOException {
    Set<String> own = sockets();
    Set<Integer> ports = new TreeSet<>();
    for (String table : List.of(protocol, protocol + "6")) {
      List<String> lines = Files.readAllLines(Path.of("/proc", pid(), "net", table));
      for (String line : lines.subList(1, lines.size())) {
        String[] fields = line.trim().split(" +", -1);
        if (own.contains("socket:[" + fields[9] + "]")
            && ("udp".equals(protocol) || LISTENS.equals(fields[3]))) {
          ports.add(Integer.parseInt(fields[1].substring(fields[1].indexOf(':') + 1), 16));
        }
      }
    }
    return ports;
  }

  private Set<String> sockets() throws IOException {
    Set<String> names = new TreeSet<>();
    try (Stream<Path> descriptors = Files.list(Path.of("/proc", pid(), "fd"))) {
      for (Path descriptor : descriptors.toList()) {
        try {
          names.add(Files.readSymbolicLink(descriptor).toString());
        } catch (NoSuchFileException e) {
          // It was closed in the meantime.
        }
      }
    }
    return names;
  }

  /** Lets the job end, and asserts that it does. */
  void end() throws IOException, InterruptedException {
    orders.close();
    if (!process.waitFor(120, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw died();
    }
  }

  @Override
  public String toString() {
    return kind.name();
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
