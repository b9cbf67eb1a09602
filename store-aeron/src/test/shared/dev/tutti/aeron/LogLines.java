package dev.tutti.aeron;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The lines that a class logs while this is open. */
public final class LogLines extends Handler implements AutoCloseable {
  private final List<String> all = new CopyOnWriteArrayList<>();
  private final Logger logger;

  public LogLines(Class<?> named) {
    logger = Logger.getLogger(named.getName());
    logger.addHandler(this);
  }

  /** Returns whether a line has a text in it. */
  public boolean has(String part) {
    return all.stream().anyMatch(line -> line.contains(part));
  }

  /** Returns the number of lines. */
  public int count() {
    return all.size();
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
