package dev.tutti.store.tcp;

import dev.tutti.spi.NanoClock;
import dev.tutti.store.table.ServerMemory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.List;

/**
 * The data to be sent to one client: small replies are copied together, long values are kept as
 * they are.
 */
final class SendQueue {
  private static final int CHUNK = 512;
  private static final int LARGEST_CHUNK = 64 * 1024;
  private static final int COPIED = 4 * 1024;
  private static final int GATHERED = 64;

  /**
   * The maximum size of one write: the JDK copies everything that it is given, however little is
   * sent.
   */
  private static final int WRITTEN = 256 * 1024;

  private final ServerMemory.Client memory;
  private final ArrayDeque<ByteBuffer> full = new ArrayDeque<>();
  private ByteBuffer tail;
  private long pending;

  /** Creates a queue without a limit. */
  SendQueue(NanoClock clock) {
    this(new ServerMemory(Long.MAX_VALUE, clock).client());
  }

  /** Creates a queue whose copies are counted. */
  SendQueue(ServerMemory.Client memory) {
    this.memory = memory;
    this.tail = chunk(CHUNK);
  }

  /** Returns how many bytes wait to be sent. */
  long pending() {
    return pending;
  }

  void putByte(byte value) {
    room(1).put(value);
    pending++;
  }

  void putInt(int value) {
    room(Integer.BYTES).putInt(value);
    pending += Integer.BYTES;
  }

  void putLong(long value) {
    room(Long.BYTES).putLong(value);
    pending += Long.BYTES;
  }

  /** Adds a query, and the key that it begins with. */
  void putQuery(int query, String key) {
    putByte((byte) query);
    putKey(key);
  }

  /** Adds a query, and the list of keys that it begins with. */
  void putQuery(int query, List<String> keys) {
    putByte((byte) query);
    putKeys(keys);
  }

  /** Adds a key as text, with its length. */
  void putKey(String key) {
    byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
    putLong(bytes.length);
    room(bytes.length).put(bytes);
    pending += bytes.length;
  }

  /** Adds a few bytes without their length. */
  void putRaw(byte[] bytes) {
    room(bytes.length).put(bytes);
    pending += bytes.length;
  }

  /** Adds a list of keys. */
  void putKeys(List<String> keys) {
    putLong(keys.size());
    for (String key : keys) {
      putKey(key);
    }
  }

  /** Adds a length and the bytes; the array must not be written afterwards. */
  void putBytes(byte[] value) {
    putBytes(ByteBuffer.wrap(value)); // big-endian, unlike counted buffers
  }

  /**
   * Adds a length and the bytes of an array that is owned by this queue alone and is therefore
   * counted as well.
   */
  void putOwnBytes(byte[] value) {
    ByteBuffer buffer = ByteBuffer.wrap(value);
    if (value.length > COPIED) {
      memory.hold(value.length);
      buffer.order(ByteOrder.LITTLE_ENDIAN);
    }
    putBytes(buffer);
  }

  private void putBytes(ByteBuffer value) {
    int length = value.remaining();
    putLong(length);
    if (length <= COPIED) {
      room(length).put(value);
    } else {
      closeTail(CHUNK);
      full.add(value);
    }
    pending += length;
  }

  /**
   * Sends as much as the channel accepts.
   *
   * @return the number of bytes sent
   */
  long flush(WritableByteChannel channel) throws IOException {
    long sent = 0;
    while (pending > 0) {
      long written = full.isEmpty() ? writeTail(channel) : writeFull(channel);
      if (written == 0) {
        break;
      }
      sent += written;
      pending -= written;
    }
    return sent;
  }

  private long writeTail(WritableByteChannel channel) throws IOException {
    tail.flip();
    long written = channel.write(tail);
    tail.compact();
    return written;
  }

  private long writeFull(WritableByteChannel channel) throws IOException {
    closeTail(CHUNK);
    ByteBuffer[] buffers = new ByteBuffer[Math.min(GATHERED, full.size())];
    int count = 0;
    int room = WRITTEN;
    for (Iterator<ByteBuffer> all = full.iterator(); count < buffers.length && room > 0; ) {
      buffers[count] = all.next();
      room -= buffers[count++].remaining();
    }
    ByteBuffer last = buffers[count - 1];
    int end = last.limit();
    last.limit(end + Math.min(0, room));
    long written;
    try {
      written =
          channel instanceof GatheringByteChannel gathering
              ? gathering.write(buffers, 0, count)
              : writeEach(channel, buffers, count);
    } finally {
      last.limit(end);
    }
    while (!full.isEmpty() && !full.peek().hasRemaining()) {
      release(full.remove());
    }
    return written;
  }

  private static long writeEach(WritableByteChannel channel, ByteBuffer[] buffers, int count)
      throws IOException {
    long written = 0;
    for (int i = 0; i < count; i++) {
      written += channel.write(buffers[i]);
      if (buffers[i].hasRemaining()) {
        break;
      }
    }
    return written;
  }

  private ByteBuffer room(int bytes) {
    if (tail.remaining() < bytes) {
      closeTail(Math.min(LARGEST_CHUNK, Math.max(tail.capacity() * 2, bytes)));
    }
    return tail;
  }

  private void closeTail(int nextCapacity) {
    if (tail.position() > 0) {
      ByteBuffer next = chunk(nextCapacity);
      full.add(tail.flip());
      tail = next;
    } else if (tail.capacity() < nextCapacity) {
      release(tail);
      tail = chunk(nextCapacity);
    }
  }

  private void release(ByteBuffer buffer) {
    if (buffer.order() == ByteOrder.LITTLE_ENDIAN) {
      memory.give(buffer.capacity());
    }
  }

  private ByteBuffer chunk(int capacity) {
    memory.take(capacity);
    return ByteBuffer.allocate(capacity).order(ByteOrder.LITTLE_ENDIAN);
  }
}
