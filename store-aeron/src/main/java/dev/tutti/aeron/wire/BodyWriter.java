package dev.tutti.aeron.wire;

import static java.nio.ByteOrder.LITTLE_ENDIAN;

import dev.tutti.StoreException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** A writer of the bodies of messages, one after another; used under a lock or by one thread. */
public final class BodyWriter {
  private static final int FIRST_BYTES = 4096;
  private static final int KEPT_BYTES = 256 * 1024;

  private final int most;
  private byte[] bytes = new byte[FIRST_BYTES];
  private final UnsafeBuffer buffer = new UnsafeBuffer(bytes);
  private int length;

  public BodyWriter() {
    this(Protocol.MAX_BODY_BYTES);
  }

  /** Creates a writer for bodies of at most the given number of bytes. */
  public BodyWriter(int most) {
    this.most = most;
  }

  /** Begins a new body. */
  public BodyWriter clear() {
    length = 0;
    if (bytes.length > KEPT_BYTES) {
      replace(new byte[FIRST_BYTES]);
    }
    return this;
  }

  public UnsafeBuffer buffer() {
    return buffer;
  }

  public int length() {
    return length;
  }

  public void putByte(int value) {
    buffer.putByte(reserve(1), (byte) value);
  }

  public void putInt(int value) {
    buffer.putInt(reserve(Integer.BYTES), value, LITTLE_ENDIAN);
  }

  public void putLong(long value) {
    buffer.putLong(reserve(Long.BYTES), value, LITTLE_ENDIAN);
  }

  public void putBytes(byte[] value) {
    putInt(value.length);
    buffer.putBytes(reserve(value.length), value);
  }

  public void putOptional(byte @Nullable [] value) {
    if (value == null) {
      putInt(-1);
    } else {
      putBytes(value);
    }
  }

  public void putText(String text) {
    putBytes(text.getBytes(StandardCharsets.UTF_8));
  }

  public void putTexts(List<String> texts) {
    putInt(texts.size());
    texts.forEach(this::putText);
  }

  private int reserve(int more) {
    int at = length;
    int needed = Math.addExact(at, more);
    if (needed > most) {
      throw new StoreException(
          "one call can have at most %d bytes of keys and values in total".formatted(most));
    }
    if (needed > bytes.length) {
      replace(Arrays.copyOf(bytes, Math.max(needed, Math.min(bytes.length * 2, 1 << 28))));
    }
    length = needed;
    return at;
  }

  private void replace(byte[] larger) {
    bytes = larger;
    buffer.wrap(bytes);
  }
}
