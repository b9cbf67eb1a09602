package dev.tutti.cuda.ipc;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.util.HexFormat;
import java.util.concurrent.TimeUnit;

/** A process that runs {@link IpcChild}. */
public final class IpcProcess implements AutoCloseable {
  private final Process process;
  private final BufferedReader out;
  private final Writer in;

  /**
   * Starts a process.
   *
   * @param driver {@code fake} or {@code gpu}
   */
  IpcProcess(String driver) throws IOException {
    this(driver, ProcessBuilder.Redirect.INHERIT);
  }

  /**
   * Starts a process.
   *
   * @param errors the destination of its standard error
   */
  IpcProcess(String driver, ProcessBuilder.Redirect errors) throws IOException {
    process = jvm(IpcChild.class, driver).redirectError(errors).start();
    out = process.inputReader(UTF_8);
    in = new OutputStreamWriter(process.getOutputStream(), UTF_8);
  }

  /** Returns a small JVM that runs a class of these tests, to be started. */
  public static ProcessBuilder jvm(Class<?> main, String argument) {
    return new ProcessBuilder(
        ProcessHandle.current().info().command().orElseThrow(),
        "--enable-native-access=ALL-UNNAMED",
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
        "-Xmx256m",
        "-cp",
        System.getProperty("java.class.path"),
        main.getName(),
        argument);
  }

  /** Waits until the process accepts commands. */
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

  /** Lets the process exit normally. */
  void end() throws Exception {
    in.close();
    assertThat(process.waitFor(4, TimeUnit.MINUTES)).as("whether it ends").isTrue();
    assertThat(process.exitValue()).isZero();
  }

  long pid() {
    return process.pid();
  }

  /** Kills the process without waiting. */
  void killNow() {
    process.destroyForcibly();
  }

  /** Kills the process and waits for its exit. */
  void kill() {
    process.destroyForcibly();
    process.onExit().join();
  }

  @Override
  public void close() {
    kill();
  }
}
