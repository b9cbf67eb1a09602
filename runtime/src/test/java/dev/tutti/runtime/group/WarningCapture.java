package dev.tutti.runtime.group;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects the warnings that a class logs on a test's thread. */
public final class WarningCapture extends Handler implements AutoCloseable {
  private final Logger logger;
  private final long thread = Thread.currentThread().threadId();
  private final List<String> messages = new CopyOnWriteArrayList<>();

  public WarningCapture(Class<?> source) {
    logger = Logger.getLogger(source.getName());
    logger.addHandler(this);
  }

  public List<String> messages() {
    return List.copyOf(messages);
  }

  @Override
  public void publish(LogRecord record) {
    if (record.getLevel().equals(Level.WARNING) && record.getLongThreadID() == thread) {
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
