package dev.tutti.store.net;

import dev.tutti.spi.NanoClock;
import dev.tutti.spi.Printable;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * A log of warnings that strangers can cause, which logs the first ones as they are and then only
 * how many more there were.
 *
 * <p>Warnings are counted by cause and address. A source that sends many of them gets three lines,
 * then one line for all warnings of the next 10 s, one for the 20 s after that, and so on up to 10
 * minutes. After 10 minutes of silence, warnings are logged as they are again. For each cause, at
 * most 64 addresses are distinguished; all others count as one. Warnings that are only counted are
 * logged at level DEBUG.
 *
 * <p>Any thread may use this log.
 */
public final class LimitedLog implements AutoCloseable {
  static final int TOLD = 3;
  static final int MOST_ADDRESSES = 64;
  static final long FIRST_NANOS = TimeUnit.SECONDS.toNanos(10);
  static final long LONGEST_NANOS = TimeUnit.MINUTES.toNanos(10);

  private static final String OTHERS = "other addresses";

  private final Logger logger;
  private final NanoClock clock;
  private final Map<String, Map<String, Count>> causes = new HashMap<>();
  private long nextDue;
  private final AtomicLong unlogged = new AtomicLong();
  private volatile @Nullable Throwable reason;
  private volatile boolean untold;

  /**
   * Creates a log.
   *
   * @param logger the logger that gets the lines
   * @param clock by which it waits for more
   */
  public LimitedLog(Logger logger, NanoClock clock) {
    this.logger = logger;
    this.clock = clock;
    // Loads what needs files: classes, and the time zones of the JDK's loggers, which get none if
    // they load for the first time while no descriptor is free.
    String time = ZonedDateTime.now(ZoneId.systemDefault()).toString();
    String _ = Printable.line(line(time + '\n', new Count(), 0));
  }

  private static final class Count {
    int told;
    long untold;
    long since;
    long seen;
    long interval = FIRST_NANOS;
    String last = "";
  }

  /**
   * Returns the host at the other end of a connection, or an empty string if there is none or the
   * connection is closed.
   */
  public static String addressOf(SocketChannel channel) {
    try {
      return channel.getRemoteAddress() instanceof InetSocketAddress internet
          ? internet.getAddress().getHostAddress()
          : "";
    } catch (IOException e) {
      return "";
    }
  }

  /**
   * Logs or counts a warning.
   *
   * @param cause the kind of warning, one of only a few, since each has its own counts
   * @param address the address that caused the warning, without a port, or empty if none did
   * @param message the complete line
   */
  public void warn(String cause, String address, String message) {
    List<String> lines = new ArrayList<>(1);
    boolean told;
    synchronized (this) {
      long now = clock.nanoTime();
      Map<String, Count> addresses = causes.computeIfAbsent(cause, c -> new HashMap<>());
      String who = addresses.containsKey(address) || makeRoom(addresses, now) ? address : OTHERS;
      Count count = addresses.computeIfAbsent(who, a -> new Count());
      if (isOver(count, now)) {
        count.told = 0;
        count.interval = FIRST_NANOS;
      }
      count.seen = now;
      told = count.told < TOLD;
      if (told) {
        count.told++;
        count.since = now;
        lines.add(message);
      } else {
        count.untold++;
        count.last = message;
        expect(count.since + count.interval);
      }
      tellDue(now, false, lines);
    }
    log(lines);
    if (!told) {
      log(Level.DEBUG, message);
    }
  }

  /** Logs the counts that are due, if there are any; cheap if there are none. */
  public void tick() {
    if (hasUntold()) {
      tell(false);
    }
  }

  /** Returns whether there are counted warnings that have not been reported yet. */
  public boolean hasUntold() {
    return untold;
  }

  /** Logs all counts that have not been reported yet. */
  @Override
  public void close() {
    tell(true);
  }

  private void tell(boolean all) {
    List<String> lines = new ArrayList<>(0);
    synchronized (this) {
      tellDue(clock.nanoTime(), all, lines);
    }
    log(lines);
  }

  private void log(List<String> lines) {
    for (String line : lines) {
      warn(line);
    }
  }

  /**
   * Logs a warning unconditionally. A warning that cannot be logged is counted, since callers must
   * be able to continue without memory or descriptors.
   *
   * @param message the complete line
   */
  public void warn(String message) {
    log(Level.WARNING, message);
  }

  private void log(Level level, String message) {
    try {
      long before = unlogged.get();
      if (before > 0) {
        logger.log(Level.WARNING, before + " warnings could not be logged: " + reason);
        unlogged.addAndGet(-before);
      }
      logger.log(level, Printable.line(message));
    } catch (RuntimeException | Error e) {
      reason = e;
      unlogged.incrementAndGet();
    }
  }

  private void expect(long due) {
    nextDue = untold && nextDue - due < 0 ? nextDue : due;
    untold = true;
  }

  private void tellDue(long now, boolean all, List<String> lines) {
    if (!untold || (!all && now - nextDue < 0)) {
      return;
    }
    untold = false;
    for (Map<String, Count> addresses : causes.values()) {
      for (Map.Entry<String, Count> entry : addresses.entrySet()) {
        Count count = entry.getValue();
        if (count.untold > 0 && (all || now - count.since - count.interval >= 0)) {
          lines.add(line(entry.getKey(), count, now));
          count.since = now;
          count.interval = Math.min(2 * count.interval, LONGEST_NANOS);
          count.untold = 0;
          count.last = "";
        } else if (count.untold > 0) {
          expect(count.since + count.interval);
        }
      }
    }
  }

  private static String line(String address, Count count, long now) {
    String from = address.isEmpty() ? "" : " from " + address;
    long seconds = TimeUnit.NANOSECONDS.toSeconds(now - count.since);
    return String.format(
        Locale.ROOT,
        "… %,d more%s in the last %d s; the last one: %s",
        count.untold,
        from,
        seconds,
        count.last);
  }

  /**
   * Discards addresses that have been silent for long, and returns whether there is room for one
   * more.
   */
  private static boolean makeRoom(Map<String, Count> addresses, long now) {
    if (addresses.size() >= MOST_ADDRESSES) {
      addresses.values().removeIf(count -> isOver(count, now));
    }
    return addresses.size() < MOST_ADDRESSES;
  }

  private static boolean isOver(Count count, long now) {
    return count.untold == 0 && now - count.seen > LONGEST_NANOS;
  }
}
