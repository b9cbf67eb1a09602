package dev.tutti.aeron;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The lines that a class logs while this is open. */
final class LogLines extends Handler implements AutoCloseable {
  private final List<String> all = new CopyOnWriteArrayList<>();
  private final Logger logger;

  LogLines(Class<?> named) {
    logger = Logger.getLogger(named.getName());
    logger.addHandler(this);
  }

  /** Tells whether a line has a text in it. */
  boolean has(String part) {
    return all.stream().anyMatch(line -> line.contains(part));
  }

  @Override
  public void publish(LogRecord entry) {
    all.add(entry.getMessage());
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
  }
}
