package dev.tutti.store;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;

/** Is another process that serves a store, until its input ends. */
final class ServerChild {
  private ServerChild() {}

  /** Starts a process that prints its port, with a small heap. */
  static Process start(String token) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx64m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path"),
            ServerChild.class.getName());
    builder.environment().put(JobToken.SETTING.name(), token);
    return builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  /** Returns the most memory that a process has had so far, in KiB. */
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
      while (System.in.read() >= 0) {
        // What comes means nothing.
      }
    }
  }
}
