package dev.tutti.cuda;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects the warnings that a class logs, and what is graver. */
public final class Warnings extends Handler implements AutoCloseable {
  private final Logger logger;
  private final Predicate<LogRecord> counts;
  private final List<String> messages = new CopyOnWriteArrayList<>();

  public Warnings(Class<?> source, Predicate<LogRecord> counts) {
    this.counts = counts;
    logger = Logger.getLogger(source.getName());
    logger.addHandler(this);
  }

  public List<String> messages() {
    return List.copyOf(messages);
  }

  @Override
  public void publish(LogRecord record) {
    if (record.getLevel().intValue() >= Level.WARNING.intValue() && counts.test(record)) {
      messages.add(record.getMessage());
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
  }
}
