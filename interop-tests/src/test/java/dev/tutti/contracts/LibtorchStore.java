package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.peer.libtorch.LibtorchClasspath;
import dev.tutti.peer.libtorch.PeerArguments;
import dev.tutti.peer.libtorch.PeerProcess;
import dev.tutti.peer.libtorch.PeerResult;
import java.time.Duration;

/** A store of libtorch in another process, controlled line by line. */
final class LibtorchStore implements AutoCloseable {
  /** Longer than the peer's own limit, so that its report of a timeout is seen. */
  private static final Duration LIMIT = Duration.ofSeconds(90);

  private final PeerProcess process;

  /** Loads libtorch, or skips the tests if it does not run here, with the reason. */
  static void prepare() {
    assumeTrue(
        LibtorchClasspath.unsupportedReason().isEmpty(),
        () -> LibtorchClasspath.unsupportedReason().orElseThrow());
    PeerProcess.prepare();
  }

  LibtorchStore(PeerArguments arguments) {
    process = PeerProcess.start(arguments.with("--no-group", "--keep-going"));
  }

  /** Starts a process that serves a TCP store. */
  static LibtorchStore server(boolean legacy) {
    PeerArguments arguments = PeerArguments.tcpServer(0, 2);
    return new LibtorchStore(legacy ? arguments.with("--legacy") : arguments);
  }

  int port() {
    return process.awaitPort(LIMIT);
  }

  /** Waits until the store is open. */
  void awaitOpen() {
    process.awaitReady(LIMIT);
  }

  /** Starts an operation, once the store is open. */
  void send(String line) {
    awaitOpen();
    process.send(line);
  }

  /** Returns the reply to the oldest operation that has none yet. */
  String reply() {
    PeerResult result = process.await(LIMIT);
    assertThat(result.ok()).as(result.message()).isTrue();
    return String.join(" ", result.values());
  }

  /** Runs an operation. */
  String run(String line) {
    send(line);
    return reply();
  }

  /** Runs an operation that must fail, and returns the reason. */
  String error(String line) {
    send(line);
    PeerResult result = process.await(LIMIT);
    assertThat(result.ok()).as(line).isFalse();
    return result.message();
  }

  @Override
  public void close() {
    process.close();
  }
}
