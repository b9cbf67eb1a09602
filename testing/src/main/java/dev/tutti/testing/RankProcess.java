package dev.tutti.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The process of one rank, whose output is passed on with the rank in front of each line. */
final class RankProcess {
  private static final int KEPT_LINES = 60;

  private final int rank;
  private final Process process;
  private final Thread reader;
  private final ArrayDeque<String> lastLines = new ArrayDeque<>();

  RankProcess(int rank, List<String> command) throws IOException {
    this.rank = rank;
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    process.getOutputStream().close();
    reader = Thread.ofPlatform().daemon().name("rank-" + rank + "-output").start(this::readOutput);
  }

  private void readOutput() {
    try (BufferedReader lines = process.inputReader()) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        System.out.println("[rank " + rank + "] " + line);
        synchronized (lastLines) {
          lastLines.add(line);
          if (lastLines.size() > KEPT_LINES) {
            lastLines.remove();
          }
        }
      }
    } catch (IOException e) {
      System.out.println("[rank " + rank + "] its output cannot be read any further: " + e);
    }
  }

  int rank() {
    return rank;
  }

  long pid() {
    return process.pid();
  }

  boolean isAlive() {
    return process.isAlive();
  }

  boolean hasFailed() {
    return !process.isAlive() && process.exitValue() != RankProcesses.PASSED;
  }

  int exitCode() {
    return process.exitValue();
  }

  boolean await(long time, TimeUnit unit) throws InterruptedException {
    return process.waitFor(time, unit);
  }

  /** Returns the last lines of output; once the process has ended, these are its final ones. */
  String lastOutput() {
    try {
      reader.join(process.isAlive() ? 1 : 5_000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    synchronized (lastLines) {
      return String.join("\n", lastLines);
    }
  }

  /** Kills the process if it is still running. */
  void kill() {
    process.destroyForcibly();
  }
}
