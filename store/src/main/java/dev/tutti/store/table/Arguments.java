package dev.tutti.store.table;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Time;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Checks the arguments of store calls, and provides the messages that all stores share. */
public final class Arguments {
  public static final byte[] NO_BYTES = {};

  private static final int SHOWN_KEYS = 8;
  private static final int SHOWN_CHARS = 128;
  private static final int SHOWN_BYTES = 32;

  private Arguments() {}

  public static String key(String key) {
    Objects.requireNonNull(key, "key");
    if (key.isEmpty()) {
      throw new IllegalArgumentException("key must not be empty");
    }
    int bytes = utf8Length(key);
    if (bytes > Store.MAX_KEY_BYTES) {
      throw new IllegalArgumentException(
          "key '%s' has %d bytes, at most %d are allowed"
              .formatted(shorten(key), bytes, Store.MAX_KEY_BYTES));
    }
    return key;
  }

  private static int utf8Length(String key) {
    int bytes = key.length();
    for (int i = 0; i < key.length(); i++) {
      char c = key.charAt(i);
      if (c >= 0x800) {
        bytes += 2;
        if (Character.isSurrogate(c)) {
          // Two chars become four bytes.
          if (Character.isLowSurrogate(c)
              || ++i == key.length()
              || !Character.isLowSurrogate(key.charAt(i))) {
            throw new IllegalArgumentException(
                "key '" + shorten(key) + "' has an unpaired surrogate, so it is not valid text");
          }
        }
      } else if (c >= 0x80) {
        bytes++;
      }
    }
    return bytes;
  }

  public static List<String> keys(Collection<String> keys) {
    List<String> copy = List.copyOf(Objects.requireNonNull(keys, "keys"));
    if (copy.size() > Store.MAX_KEYS) {
      throw new IllegalArgumentException(
          "%d keys in one call, at most %d are allowed".formatted(copy.size(), Store.MAX_KEYS));
    }
    copy.forEach(Arguments::key);
    return copy;
  }

  public static byte[] value(String key, byte[] value) {
    Objects.requireNonNull(value, "value");
    if (value.length > Store.MAX_VALUE_BYTES) {
      throw new IllegalArgumentException(
          "value of key '%s' has %d bytes, at most %d are allowed"
              .formatted(shorten(key), value.length, Store.MAX_VALUE_BYTES));
    }
    return value;
  }

  public static void values(List<String> keys, List<byte[]> values) {
    Objects.requireNonNull(values, "values");
    if (keys.size() != values.size()) {
      throw new IllegalArgumentException(
          "the numbers of keys and values must be equal, got %d keys and %d values"
              .formatted(keys.size(), values.size()));
    }
    for (int i = 0; i < keys.size(); i++) {
      value(keys.get(i), values.get(i));
    }
  }

  /** Returns whether a value equals the expected one; null stands for no value on either side. */
  public static boolean same(byte @Nullable [] value, byte @Nullable [] expected) {
    return value == null ? expected == null : Arrays.equals(value, expected);
  }

  public static int barrierSize(String key, int size) {
    if (size < 1) {
      throw new IllegalArgumentException(
          "barrier '%s' needs a size of at least 1, got %d".formatted(shorten(key), size));
    }
    return size;
  }

  /** Returns a time-out in nanoseconds, clamped to the range of a long. */
  public static long nanos(Duration timeout) {
    return TimeUnit.NANOSECONDS.convert(Objects.requireNonNull(timeout, "timeout"));
  }

  /** Returns a deadline in terms of the clock of {@code time} that never overflows. */
  public static long deadline(Time time, long nanos) {
    return time.nanoTime() + Math.clamp(nanos, 0, Long.MAX_VALUE / 2);
  }

  public static byte[] concat(String key, byte[] head, byte[] tail) {
    requireRoom(key, head, tail);
    byte[] joined = Arrays.copyOf(head, head.length + tail.length);
    System.arraycopy(tail, 0, joined, head.length, tail.length);
    return joined;
  }

  public static void requireRoom(String key, byte[] head, byte[] tail) {
    int length = head.length + tail.length;
    if (length > Store.MAX_VALUE_BYTES) {
      throw new StoreException(
          "appending %d bytes to key '%s' makes %d bytes, at most %d are allowed"
              .formatted(tail.length, shorten(key), length, Store.MAX_VALUE_BYTES));
    }
  }

  public static StoreTimeoutException waitTimeout(List<String> missing, int all, Duration timeout) {
    return new StoreTimeoutException(waitMessage(missing, all, timeout), missing);
  }

  public static StoreTimeoutException popTimeout(String key, Duration timeout) {
    return new StoreTimeoutException(popMessage(key, timeout), List.of(key));
  }

  public static StoreTimeoutException barrierTimeout(
      String key, int arrived, int size, Duration timeout) {
    return new StoreTimeoutException(barrierMessage(key, arrived, size, timeout), List.of(key));
  }

  private static String waitMessage(List<String> missing, int all, Duration timeout) {
    StringBuilder text = new StringBuilder(128);
    text.append("wait timeout after ").append(millis(timeout)).append(" ms, ");
    text.append(missing.size()).append(" of ").append(all).append(" keys missing: ");
    for (int i = 0; i < Math.min(missing.size(), SHOWN_KEYS); i++) {
      text.append(i == 0 ? "" : ", ").append('\'').append(shorten(missing.get(i))).append('\'');
    }
    return text.append(missing.size() > SHOWN_KEYS ? ", ..." : "").toString();
  }

  public static String emptyMessage(String key) {
    return "queue '%s' is empty".formatted(shorten(key));
  }

  private static String popMessage(String key, Duration timeout) {
    return "queue '%s' is still empty after %d ms".formatted(shorten(key), millis(timeout));
  }

  private static String barrierMessage(String key, int arrived, int size, Duration timeout) {
    return "barrier timeout after %d ms, key '%s': %d of %d members arrived"
        .formatted(millis(timeout), shorten(key), arrived, size);
  }

  public static String sizeMessage(String key, int size, int expected) {
    return "barrier '%s' has %d members, this caller expects %d"
        .formatted(shorten(key), size, expected);
  }

  public static String shorten(String key) {
    return key.length() <= SHOWN_CHARS
        ? key
        : key.substring(0, SHOWN_CHARS) + "...(" + key.length() + " chars)";
  }

  public static String preview(byte[] value) {
    String text =
        new String(value, 0, Math.min(value.length, SHOWN_BYTES), StandardCharsets.ISO_8859_1);
    boolean printable = text.chars().allMatch(c -> c >= ' ' && c < 127);
    return value.length + " bytes" + (printable && !text.isEmpty() ? " \"" + text + '"' : "");
  }

  private static long millis(Duration timeout) {
    return Math.max(0, nanos(timeout) / 1_000_000);
  }
}
