package dev.tutti.store.tcp;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.stream.Stream;

/** Collects what the store server logs instead of printing it. */
final class LogCapture extends Handler {
  private final Logger logger = Logger.getLogger(TcpStoreServer.class.getName());
  private final List<LogRecord> records = new CopyOnWriteArrayList<>();

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
    return of(port).map(LogRecord::getMessage).toList();
  }

  /** Returns the levels of a server's messages. */
  List<Level> levels(int port) {
    return of(port).map(LogRecord::getLevel).toList();
  }

  /** Selects what one server logs: the thread of a server of another test may log late. */
  private Stream<LogRecord> of(int port) {
    return records.stream().filter(record -> record.getMessage().contains("port " + port + " "));
  }

  @Override
  public void publish(LogRecord record) {
    records.add(record);
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(true);
  }
}
