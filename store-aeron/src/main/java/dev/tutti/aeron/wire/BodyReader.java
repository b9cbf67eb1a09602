package dev.tutti.aeron.wire;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.tutti.Store;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** A reader of the bodies of messages, one after another, which trusts none of their numbers. */
public final class BodyReader {
  private static final char UNREADABLE = '\uFFFD';

  private DirectBuffer buffer = new UnsafeBuffer(new byte[0]);
  private int at;
  private int end;

  public BodyReader wrap(DirectBuffer body, int offset, int length) {
    buffer = body;
    at = offset;
    end = offset + length;
    return this;
  }

  public byte readByte() {
    return buffer.getByte(take(1));
  }

  public int readInt() {
    return buffer.getInt(take(Integer.BYTES), LITTLE_ENDIAN);
  }

  public long readLong() {
    return buffer.getLong(take(Long.BYTES), LITTLE_ENDIAN);
  }

  public byte[] readBytes() {
    return bytes(readInt());
  }

  public byte @Nullable [] readOptional() {
    int length = readInt();
    return length == -1 ? null : bytes(length);
  }

  public String readText() {
    return new String(readBytes(), StandardCharsets.UTF_8);
  }

  public String readKey() {
    return readKey(Store.MAX_KEY_BYTES);
  }

  /** Reads a key of at most the given number of bytes. */
  public String readKey(int most) {
    int length = readInt();
    if (length < 1 || length > most) {
      throw new MalformedMessageException("a key of " + length + " bytes");
    }
    byte[] bytes = bytes(length);
    String key = new String(bytes, StandardCharsets.UTF_8);
    if (key.indexOf(UNREADABLE) >= 0
        && !Arrays.equals(key.getBytes(StandardCharsets.UTF_8), bytes)) {
      throw new MalformedMessageException("a key that is not UTF-8");
    }
    return key;
  }

  public byte[] readValue() {
    byte[] value = readBytes();
    if (value.length > Store.MAX_VALUE_BYTES) {
      throw new MalformedMessageException("a value of " + value.length + " bytes");
    }
    return value;
  }

  /** Reads the number of the elements that follow; each takes at least an int. */
  private int readCount() {
    int count = readInt();
    if (count < 0 || count > (end - at) / Integer.BYTES) {
      throw new MalformedMessageException(
          "a list of " + count + " entries in " + (end - at) + " bytes");
    }
    return count;
  }

  public List<String> readKeys() {
    int count = readCount();
    if (count > Store.MAX_KEYS) {
      throw new MalformedMessageException(count + " keys in one call");
    }
    return readList(count, this::readKey);
  }

  /** Reads any number of texts. */
  public List<String> readAllTexts() {
    return readList(readCount(), this::readText);
  }

  private static List<String> readList(int count, Supplier<String> text) {
    List<String> texts = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      texts.add(text.get());
    }
    return texts;
  }

  public List<byte[]> readAllBytes() {
    int count = readCount();
    List<byte[]> all = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      all.add(readBytes());
    }
    return all;
  }

  /** Returns all remaining bytes. */
  public byte[] rest() {
    return bytes(end - at);
  }

  private byte[] bytes(int length) {
    int from = take(length);
    byte[] copy = new byte[length];
    buffer.getBytes(from, copy);
    return copy;
  }

  private int take(int length) {
    if (length < 0 || length > end - at) {
      throw new MalformedMessageException(
          "%d bytes expected, but only %d are left".formatted(length, end - at));
    }
    int from = at;
    at += length;
    return from;
  }
}
