package dev.tutti.fake.failure;

import dev.tutti.fake.simulation.Simulation;
import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what a class logs in a simulation, with the time, and keeps it out of the output. */
final class LogCapture extends Handler implements AutoCloseable {
  private final List<String> lines = new ArrayList<>();
  private final Logger logger;

  LogCapture(String name) {
    logger = Logger.getLogger(name);
    logger.addHandler(this);
    logger.setUseParentHandlers(false);
  }

  @Override
  public void publish(LogRecord line) {
    lines.add(Simulation.now().toMillis() + " ms: " + line.getMessage());
  }

  /** Returns the lines that were logged since the last call. */
  List<String> take() {
    List<String> taken = List.copyOf(lines);
    lines.clear();
    return taken;
  }

  @Override
  public void flush() {}

  @Override
  public void close() {
    logger.removeHandler(this);
    logger.setUseParentHandlers(true);
  }
}
