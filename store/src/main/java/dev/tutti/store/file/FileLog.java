package dev.tutti.store.file;

import dev.tutti.StoreException;
import dev.tutti.spi.Time;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.Decimal;
import dev.tutti.store.table.KeyText;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Holds the content of a store file, and appends to it; the caller serializes the calls of one
 * process.
 */
final class FileLog {
  /*
   * The format is that of PyTorch's FileStore: records that consist of a u32 length and a key, and
   * a u32 length and a value, little-endian, and that are only ever appended. The last record of a
   * key counts, and a record whose key starts with a minus deletes the key that follows the minus.
   * User keys start with a slash. Every reader and writer holds the lock of the file, so an
   * incomplete record at the end belongs to a writer that died, and is cut off. This needs the lock
   * of PyTorch's ranks if there are any, and a file that begins as every store file does: another
   * file is left alone.
   *
   * The first bytes that this process wrote are found nowhere else, and are checked each time: a
   * file that has replaced this one may have the same inode.
   *
   * Keys are kept as strings that carry their bytes (KeyText.BYTES).
   */
  static final char DELETE = '-';

  static final String REFERENCES = "refcount/";
  static final String MEMBER = "tutti/member/";

  /** The length and the key of the first record, little-endian. */
  private static final byte[] BEGINNING =
      ("\t\0\0\0" + REFERENCES).getBytes(StandardCharsets.US_ASCII);

  /** How many bytes show whether a file is a store file. */
  static final int BEGINNING_BYTES = BEGINNING.length;

  private final Path path;
  private final Time time;
  private final Map<String, byte[]> values = new HashMap<>();
  private byte[] mark = Arguments.NO_BYTES;
  private long markPosition;
  private long position;

  /**
   * Creates an empty picture of a file.
   *
   * @param path the file
   * @param time by which it waits for the file
   */
  FileLog(Path path, Time time) {
    this.path = path;
    this.time = time;
  }

  /** A step that reads, decides and writes while the file is locked. */
  interface Transaction<T extends @Nullable Object> {
    T run(Changes changes);
  }

  /** The records of a transaction, visible to it at once. */
  final class Changes {
    private final ByteArrayOutputStream records = new ByteArrayOutputStream();
    private final Map<String, byte @Nullable []> undo = new HashMap<>();

    byte @Nullable [] get(String key) {
      return values.get(key);
    }

    void set(String key, byte[] value) {
      undo.putIfAbsent(key, values.get(key));
      values.put(key, value);
      record(key, value);
    }

    void delete(String key) {
      undo.putIfAbsent(key, values.get(key));
      values.remove(key);
      record(DELETE + key, Arguments.NO_BYTES);
    }

    long add(String key, long delta) {
      byte[] old = values.get(key);
      long sum = old == null ? delta : Decimal.add(userKey(key), old, delta);
      set(key, Decimal.format(sum));
      return sum;
    }

    private void record(String key, byte[] value) {
      byte[] name = key.getBytes(KeyText.BYTES);
      ByteBuffer lengths = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      records.writeBytes(lengths.putInt(0, name.length).array());
      records.writeBytes(name);
      records.writeBytes(lengths.putInt(0, value.length).array());
      records.writeBytes(value);
    }
  }

  /** Returns whether a file begins as every store file does, as far as it goes. */
  static boolean isBegun(byte[] content) {
    int length = Math.min(content.length, BEGINNING.length);
    return Arrays.equals(content, 0, length, BEGINNING, 0, length);
  }

  /** Returns whether a rank of PyTorch may have the file open. */
  static boolean haveForeigners(Map<String, byte[]> values) {
    long members = values.keySet().stream().filter(key -> key.startsWith(MEMBER)).count();
    return number(values, REFERENCES) > members;
  }

  static long number(Map<String, byte[]> values, String key) {
    byte[] text = values.get(key);
    return text == null ? 0 : Decimal.parse(key, text);
  }

  /** Returns the known content of the file; the caller must not change it. */
  Map<String, byte[]> values() {
    return values;
  }

  /** Returns when the file was last changed. */
  Instant modified() {
    try {
      return Files.getLastModifiedTime(path).toInstant();
    } catch (IOException e) {
      throw failure(e);
    }
  }

  /** Deletes the file, which is locked. */
  void deleteFile() {
    try {
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw failure(e);
    }
  }

  /** Returns a key in its user's form. */
  static String userKey(String key) {
    String text = new String(key.getBytes(KeyText.BYTES), StandardCharsets.UTF_8);
    return text.startsWith("/") ? text.substring(1) : text;
  }

  /** Reads what others have added since the last time; returns whether there was anything. */
  boolean refresh(long deadline) {
    try {
      if (Files.size(path) == position) {
        return false;
      }
      try (LockedFile file = lock(false, deadline)) {
        return read(file);
      }
    } catch (IOException e) {
      throw failure(e);
    }
  }

  /**
   * Locks the file, reads what others have added, and appends the records of a transaction: all of
   * them, or none if it throws.
   *
   * @param create whether to create the file if it does not exist
   * @param deadline when to give up waiting for the lock
   * @param transaction the step to run
   */
  <T extends @Nullable Object> T transact(
      boolean create, long deadline, Transaction<T> transaction) {
    Changes changes = new Changes();
    boolean done = false;
    try (LockedFile file = lock(create, deadline)) {
      read(file);
      T result = transaction.run(changes);
      if (changes.records.size() > 0) {
        byte[] records = changes.records.toByteArray();
        file.append(records);
        if (mark.length == 0) {
          mark = records;
          markPosition = position;
        }
        position += records.length;
      }
      done = true;
      return result;
    } catch (IOException e) {
      throw failure(e);
    } finally {
      if (!done) {
        changes.undo.forEach(
            (key, value) -> {
              if (value == null) {
                values.remove(key);
              } else {
                values.put(key, value);
              }
            });
      }
    }
  }

  private LockedFile lock(boolean create, long deadline) throws IOException {
    LockedFile file = LockedFile.open(path, create, deadline, time);
    boolean ours = false;
    try {
      ours = file.length() >= position && file.has(mark, markPosition);
      if (!ours) {
        throw new StoreException(
            "store file %s was replaced by another one; does another run use the same path?"
                .formatted(path));
      }
      return file;
    } finally {
      if (!ours) {
        file.close();
      }
    }
  }

  private boolean read(LockedFile file) throws IOException {
    long length = file.length();
    if (length == position) {
      return false;
    }
    byte[] bytes = file.read(position);
    int complete = take(bytes, file);
    if (complete < bytes.length) {
      file.cut(position + complete);
      LockedFile.LOG.log(
          Level.WARNING,
          "store file %s: cut off its last %d bytes, a record whose writer died"
              .formatted(path, bytes.length - complete));
    }
    position += complete;
    return complete > 0;
  }

  /** Takes over records; returns the position of an incomplete one to cut off, or the end. */
  private int take(byte[] all, LockedFile file) {
    ByteBuffer bytes = ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN);
    while (bytes.hasRemaining()) {
      int start = bytes.position();
      String lack = lack(bytes);
      if (lack != null) {
        boolean isStore = position > 0 || isBegun(all);
        if (isStore && (file.excludesPyTorch() || !haveForeigners(values))) {
          return start;
        }
        throw corrupt(start, lack);
      }
      String key = new String(field(bytes), KeyText.BYTES);
      byte[] value = field(bytes);
      if (key.isEmpty()) {
        throw corrupt(start, "its key is empty");
      }
      if (key.charAt(0) == DELETE) {
        values.remove(key.substring(1));
      } else {
        values.put(key, value);
      }
    }
    return all.length;
  }

  /** Returns what is missing of the next record, or null if it is complete. */
  private static @Nullable String lack(ByteBuffer bytes) {
    int at = bytes.position();
    for (String what : List.of("key", "value")) {
      int rest = bytes.limit() - at - Integer.BYTES;
      if (rest < 0) {
        return "the length of its " + what + " is truncated";
      }
      long length = Integer.toUnsignedLong(bytes.getInt(at));
      if (length > rest) {
        return "its %s has %d bytes, but only %d follow".formatted(what, length, rest);
      }
      at += Integer.BYTES + (int) length;
    }
    return null;
  }

  private static byte[] field(ByteBuffer bytes) {
    byte[] field = new byte[bytes.getInt()];
    bytes.get(field);
    return field;
  }

  private StoreException corrupt(int start, String why) {
    return new StoreException(
        ("store file %s is damaged in the record at byte %d: %s; a rank may have died while writing"
                + " it, or it is not a store file")
            .formatted(path, position + start, why));
  }

  private StoreException failure(IOException e) {
    return e instanceof NoSuchFileException && mark.length > 0
        ? new StoreException(
            "store file %s is gone: all ranks closed it, or it was deleted".formatted(path), e)
        : new StoreException("store file %s: %s".formatted(path, e), e);
  }
}
