package dev.tutti.runtime.group;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what a class logs on any thread, and keeps it out of the test's own output. */
final class LogCapture extends Handler implements AutoCloseable {
  final List<LogRecord> records = new CopyOnWriteArrayList<>();
  private final Logger logger;

  LogCapture(Class<?> source) {
    this(source.getName());
  }

  LogCapture(String name) {
    logger = Logger.getLogger(name);
    logger.addHandler(this);
    logger.setUseParentHandlers(false);
  }

  @Override
  public void publish(LogRecord record) {
    records.add(record);
  }

  /** Returns whether a single line contains all parts. */
  boolean has(String... parts) {
    return records.stream()
        .anyMatch(record -> List.of(parts).stream().allMatch(record.getMessage()::contains));
  }

  /** Counts the lines that contain a text. */
  long count(String text) {
    return records.stream().filter(record -> record.getMessage().contains(text)).count();
  }

  /** Returns whether a line matches a regular expression. */
  boolean matches(String line) {
    return records.stream().anyMatch(record -> record.getMessage().matches(line));
  }

  String all() {
    return String.join("\n", records.stream().map(LogRecord::getMessage).toList());
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(true);
  }
}
