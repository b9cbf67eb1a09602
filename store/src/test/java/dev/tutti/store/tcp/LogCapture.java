package dev.tutti.store.tcp;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what the store server logs instead of printing it. */
final class LogCapture extends Handler {
  private final Logger logger = Logger.getLogger(TcpStoreServer.class.getName());
  private final List<String> messages = new CopyOnWriteArrayList<>();
  private final List<Level> levels = new CopyOnWriteArrayList<>();

  LogCapture() {
    logger.addHandler(this);
    logger.setUseParentHandlers(false);
  }

  /** Waits for a log message of a server that contains a text. */
  void await(int port, String text) {
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(2);
    while (messages(port).stream().noneMatch(message -> message.contains(text))) {
      if (System.nanoTime() > deadline) {
        throw new AssertionError("no log with '" + text + "' but " + messages(port));
      }
      Thread.onSpinWait();
    }
  }

  List<String> messages(int port) {
    return messages.stream().filter(message -> message.contains("port " + port + " ")).toList();
  }

  /** Returns the levels of the messages. */
  List<Level> levels() {
    return List.copyOf(levels);
  }

  @Override
  public void publish(LogRecord record) {
    levels.add(record.getLevel());
    messages.add(record.getMessage());
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(true);
  }
}
