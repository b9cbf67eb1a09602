package dev.tutti.store.tcp;

import dev.tutti.store.JobToken;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A child process that serves a store until its input ends. */
final class ServerChild {
  private ServerChild() {}

  /** Starts a process with a small heap that prints its port. */
  static Process start(String token) throws IOException {
    return start(token, Objects.requireNonNull(ProcessBuilder.Redirect.DISCARD.file()), List.of());
  }

  /**
   * Starts a process that prints its port, and then, for each input line, whether it is serving.
   *
   * @param log the file for its log
   * @param before the command that runs Java, as in {@code prlimit --nofile=100}
   */
  static Process start(String token, File log, List<String> before) throws IOException {
    List<String> command = new ArrayList<>(before);
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx64m",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-cp",
            System.getProperty("java.class.path"),
            ServerChild.class.getName()));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put(JobToken.SETTING.name(), token);
    return builder.redirectError(log).start();
  }

  /** Returns the peak memory of a process so far, in KiB. */
  static long peakMemory(Process process) throws IOException {
    return Files.readAllLines(Path.of("/proc/" + process.pid() + "/status")).stream()
        .filter(line -> line.startsWith("VmHWM:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .findFirst()
        .orElseThrow();
  }

  /** Runs the child. */
  public static void main(String[] args) throws IOException {
    InetAddress loopback = InetAddress.getLoopbackAddress();
    try (TcpStoreServer server = new TcpStoreServer(loopback, 0)) {
      System.out.println(server.port());
      BufferedReader in =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      while (in.readLine() != null) {
        System.out.println(server.isRunning());
      }
    }
  }
}
