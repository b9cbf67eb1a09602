package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.stream.Stream;

/** Lets processes that have shared tensors exit, and reads the warnings they print. */
final class ExitWarnings {
  private ExitWarnings() {}

  /**
   * Opens two of a process's four tensors and returns one of the two, then lets the process exit.
   */
  static void check(CudaIpc ipc, String driver, Path folder) throws Exception {
    Path log = folder.resolve("used");
    try (IpcProcess producer = new IpcProcess(driver, Redirect.to(log.toFile())).ready()) {
      ReceivedTensor open = ipc.open(share(producer));
      ipc.open(share(producer)).close();
      share(producer);
      share(producer);
      producer.end();
      assertThat(warnings(log)).containsExactly(warning(producer, 3));
      open.close();
    }
    Path quiet = folder.resolve("returned");
    try (IpcProcess producer = new IpcProcess(driver, Redirect.to(quiet.toFile())).ready()) {
      ipc.open(share(producer)).close();
      producer.end();
      assertThat(warnings(quiet)).isEmpty();
    }
    Path closed = folder.resolve("closed");
    try (IpcProcess producer = new IpcProcess(driver, Redirect.to(closed.toFile())).ready()) {
      ReceivedTensor open = ipc.open(share(producer));
      assertThat(producer.ask("end")).isEqualTo("ended");
      producer.end();
      assertThat(warnings(closed)).isEmpty();
      assertThat(Files.readString(closed)).contains("other processes still use 1 tensors");
      open.close();
    }
  }

  private static String warning(IpcProcess producer, int used) {
    return "WARNING: process "
        + producer.pid()
        + " exits without CudaIpc.close() while "
        + used
        + " tensors that it shared have not been returned; other processes lose them. Call"
        + " CudaIpc.awaitReturned first";
  }

  private static Stream<String> warnings(Path log) throws IOException {
    return Files.readAllLines(log).stream().filter(line -> line.contains("CudaIpc.close()"));
  }

  private static byte[] share(IpcProcess producer) throws IOException {
    String answer = producer.ask("share 3");
    assertThat(answer).startsWith("shared ");
    return HexFormat.of().parseHex(answer.substring("shared ".length()));
  }
}
