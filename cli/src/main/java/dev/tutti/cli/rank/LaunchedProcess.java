package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.process.Affinity;
import dev.tutti.cli.process.Reasons;
import dev.tutti.cli.rank.RankOutput.Channel;
import dev.tutti.runtime.record.PrivateFiles;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The running process of one rank, whose output is passed on and whose last lines are remembered.
 */
public final class LaunchedProcess {
  private final int rank;
  private final Process process;
  private final ProcessTree tree;
  private final Tail tail;
  private final List<OutputPump> pumps;

  private LaunchedProcess(int rank, Process process, Tail tail, List<OutputPump> pumps) {
    this.rank = rank;
    this.process = process;
    this.tree = ProcessTree.of(process);
    this.tail = tail;
    this.pumps = pumps;
  }

  /**
   * Starts a process.
   *
   * @param rank the rank
   * @param command the program and its arguments
   * @param environment the complete environment of the process
   * @param processors the processors of all its threads, by number; none to bind it to nothing
   * @param output receives what the process prints
   * @param logs the directory for {@code stdout.log} and {@code stderr.log}, if any
   * @param tailLines the number of last lines to remember
   * @param patience how long to wait for more output after the process has ended
   * @param onExit receives the process when it has ended, on a thread of the JDK
   * @throws IOException if the program cannot be started or a log cannot be written
   */
  public static LaunchedProcess start(
      int rank,
      List<String> command,
      Map<String, String> environment,
      BitSet processors,
      RankOutput output,
      Optional<Path> logs,
      int tailLines,
      Duration patience,
      Consumer<Process> onExit)
      throws IOException {
    LogFile outLog;
    LogFile errLog;
    try {
      outLog = LogFile.open(logs, "stdout.log");
      errLog = LogFile.open(logs, "stderr.log");
    } catch (IOException e) {
      throw new IOException(
          "cannot write its logs to " + logs.orElseThrow() + ": " + Reasons.of(e), e);
    }
    ProcessBuilder builder = new ProcessBuilder(ProcessTree.isolated(command));
    builder.redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")));
    change(builder.environment(), environment);
    Process process = Affinity.on(processors, builder::start);
    Tail tail = new Tail(tailLines);
    OutputPump out = pump(rank, process, Channel.OUT, outLog, tail, output, patience);
    OutputPump err = pump(rank, process, Channel.ERR, errLog, tail, output, patience);
    var _ = process.onExit().thenAccept(onExit);
    return new LaunchedProcess(rank, process, tail, List.of(out, err));
  }

  /**
   * Changes only what differs: the JDK passes on the bytes of the rest, and in the locale of this
   * process they may not stand for any text.
   */
  private static void change(Map<String, String> inherited, Map<String, String> wanted) {
    Map<String, String> before = new HashMap<>(inherited);
    inherited.keySet().retainAll(wanted.keySet());
    wanted.forEach(
        (name, value) -> {
          if (!value.equals(before.get(name))) {
            inherited.put(name, value);
          }
        });
  }

  private static OutputPump pump(
      int rank,
      Process process,
      Channel channel,
      LogFile log,
      Tail tail,
      RankOutput output,
      Duration patience) {
    TraceBuffer buffer = new TraceBuffer(lines -> output.lines(rank, channel, lines));
    LinePump.Sink sink =
        new LinePump.Sink() {
          private final ByteArrayOutputStream unended = new ByteArrayOutputStream();

          @Override
          public void accept(byte[] line) {
            tail.add(line);
            log.write(line, true);
            buffer.accept(line);
          }

          @Override
          public boolean takesPieces() {
            return true;
          }

          @Override
          public void piece(byte[] bytes, boolean isLast) {
            log.write(bytes, isLast);
            unended.writeBytes(bytes);
            if (output.takesPieces()) {
              output.piece(rank, channel, bytes, isLast);
            }
            if (isLast) {
              byte[] line = unended.toByteArray();
              unended.reset();
              tail.add(line);
              if (!output.takesPieces()) {
                buffer.accept(line);
              }
            }
          }

          @Override
          public boolean isHolding() {
            return buffer.isHolding();
          }

          @Override
          public void release() {
            buffer.release();
          }
        };
    return OutputPump.start(
        "tutti-rank" + rank + "-" + channel.name().toLowerCase(Locale.ROOT),
        channel == Channel.OUT ? process.getInputStream() : process.getErrorStream(),
        sink,
        patience,
        log::close);
  }

  /** Returns the rank. */
  public int rank() {
    return rank;
  }

  /** Returns the process and its children. */
  public ProcessTree tree() {
    return tree;
  }

  /** Returns whether the process itself is running; its children may outlive it. */
  public boolean isRunning() {
    return process.isAlive();
  }

  /** Returns whether the process itself has died, even if the JDK has not noticed yet. */
  public boolean isDead() {
    return !process.isAlive() || tree.isRootDead();
  }

  /** Returns the pumps of its output. */
  public List<OutputPump> pumps() {
    return pumps;
  }

  /** Returns the last lines that the process printed, on either output, without stack frames. */
  public List<String> tail() {
    return tail.lines();
  }

  /** Returns whether the process printed stack frames, on either output. */
  public boolean hasPrintedFrames() {
    return tail.hasFrames();
  }

  /** The last lines; stack frames are left out, so that exceptions remain. */
  private static final class Tail {
    private final int limit;
    private final ArrayDeque<byte[]> lines = new ArrayDeque<>();
    private boolean hasFrames;

    Tail(int limit) {
      this.limit = limit;
    }

    synchronized void add(byte[] line) {
      if (StackFrames.isFrame(line)) {
        hasFrames = true;
        return;
      }
      lines.add(line);
      if (lines.size() > limit) {
        lines.remove();
      }
    }

    synchronized boolean hasFrames() {
      return hasFrames;
    }

    synchronized List<String> lines() {
      return lines.stream().map(line -> new String(line, UTF_8)).toList();
    }
  }

  /** A log file of lines; the first failure to write ends the log, not the rank. */
  private static final class LogFile implements AutoCloseable {
    private @Nullable OutputStream file;

    private LogFile(@Nullable OutputStream file) {
      this.file = file;
    }

    static LogFile open(Optional<Path> directory, String name) throws IOException {
      if (directory.isEmpty()) {
        return new LogFile(null);
      }
      PrivateFiles.createFolders(directory.get());
      return new LogFile(
          new BufferedOutputStream(PrivateFiles.create(directory.get().resolve(name))));
    }

    void write(byte[] bytes, boolean endsLine) {
      if (file == null) {
        return;
      }
      try {
        file.write(bytes);
        if (endsLine) {
          file.write('\n');
        }
        file.flush();
      } catch (IOException e) {
        System.getLogger("dev.tutti.cli")
            .log(System.Logger.Level.WARNING, "cannot write to the log, which ends here", e);
        file = null;
      }
    }

    @Override
    public void close() {
      if (file != null) {
        try {
          file.close();
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }
    }
  }
}
