package dev.tutti.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/** Runs an {@link IpcChild}. */
final class IpcProcess implements AutoCloseable {
  private final Process process;
  private final BufferedReader out;
  private final Writer in;

  /**
   * Starts one.
   *
   * @param driver {@code fake} or {@code gpu}
   */
  IpcProcess(String driver) throws IOException {
    this(driver, ProcessBuilder.Redirect.INHERIT);
  }

  /**
   * Starts one.
   *
   * @param errors where its standard error goes
   */
  IpcProcess(String driver, ProcessBuilder.Redirect errors) throws IOException {
    process =
        new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(),
                "--enable-native-access=ALL-UNNAMED",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-XX:+UseSerialGC",
                "-Xmx256m",
                "-cp",
                System.getProperty("java.class.path"),
                IpcChild.class.getName(),
                driver)
            .redirectError(errors)
            .start();
    out = process.inputReader(UTF_8);
    in = new OutputStreamWriter(process.getOutputStream(), UTF_8);
  }

  /** Waits until it can be asked. */
  IpcProcess ready() throws IOException {
    assertThat(out.readLine()).isEqualTo("ready");
    return this;
  }

  /** Sends a line and returns the answer. */
  String ask(String line) throws IOException {
    in.write(line + "\n");
    in.flush();
    return String.valueOf(out.readLine());
  }

  String open(SharedTensor tensor) throws IOException {
    return ask("open " + HexFormat.of().formatHex(tensor.handle()));
  }

  /** Lets it end by itself. */
  void end() throws Exception {
    in.close();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).as("whether it ends").isTrue();
    assertThat(process.exitValue()).isZero();
  }

  long pid() {
    return process.pid();
  }

  /** Kills it and does not wait. */
  void killNow() {
    process.destroyForcibly();
  }

  /** Kills it and waits for its end. */
  void kill() {
    process.destroyForcibly();
    process.onExit().join();
  }

  @Override
  public void close() {
    kill();
  }
}
