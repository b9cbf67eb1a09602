package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.store.table.Arguments;
import dev.tutti.store.table.KeyText;
import dev.tutti.store.table.ServerMemory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Splits the bytes of one client into requests. */
final class RequestReader {
  /*
   * A request may come in pieces of any size. Its shape (Wire) is walked one field at a time. An
   * incomplete field stays in the buffer and is tried again when there is more. The exception is
   * long values, which collect in an array that grows with the bytes that have come, never with the
   * announced length. A client can therefore make the server hold only what it has sent, and no
   * more than its share of the heap.
   */
  /** The longest incomplete field that stays in the buffer. */
  static final int MAX_HELD_BYTES = Long.BYTES + Store.MAX_KEY_BYTES + 1;

  /** The maximum length of a request, as the sum of its keys and values. */
  static final long MAX_REQUEST_BYTES = 1L << 30;

  private static final int FIRST_ARRAY = 64 * 1024;
  private static final int RAW_BYTES = 32;

  /** The memory that a key or value takes in addition to its own bytes. */
  private static final int ITEM_BYTES = 64;

  /** The longest list that is reused. */
  private static final int KEPT_ITEMS = 16;

  private final TokenGate gate;
  private final ServerMemory.Client memory;
  private final SendQueue replies;
  private long taken;
  private boolean validated;
  private int query = -1;
  private String shape = "";
  private int step;
  private int loop;
  private long left;
  private long bytes;
  private List<String> keys = new ArrayList<>(1);
  private List<byte[]> values = new ArrayList<>(2);
  private long number;
  private byte[] value = Arguments.NO_BYTES;
  private int filled;
  private int length = -1;

  /**
   * Creates the reader of a client.
   *
   * @param gate decides which requests to let through
   * @param memory counts the memory of requests
   * @param replies takes what a client can read that uses TLS here
   */
  RequestReader(TokenGate gate, ServerMemory.Client memory, SendQueue replies) {
    this.gate = gate;
    this.memory = memory;
    this.replies = replies;
  }

  /** Returns whether the client has shown that it speaks the protocol. */
  boolean isValidated() {
    return validated;
  }

  /** Discards the complete request. */
  void done() {
    keys = emptied(keys, 1);
    values = emptied(values, 2);
    memory.give(takeMemory());
  }

  private static <T> List<T> emptied(List<T> list, int capacity) {
    if (list.size() > KEPT_ITEMS) {
      return new ArrayList<>(capacity);
    }
    list.clear();
    return list;
  }

  /** Returns the memory that the request takes; the caller must give it back. */
  long takeMemory() {
    long bytes = taken;
    taken = 0;
    return bytes;
  }

  private void take(long size) {
    memory.take(size);
    taken += size;
  }

  /** Returns the query of the complete request. */
  int query() {
    return query;
  }

  /** Returns the first key of the request. */
  String key() {
    return keys.get(0);
  }

  /** Returns the keys of the request; the list belongs to the caller. */
  List<String> takeKeys() {
    List<String> taken = keys;
    keys = new ArrayList<>(1);
    return taken;
  }

  /** Returns one of the values of the request. */
  byte[] value(int index) {
    return values.get(index);
  }

  /** Returns the number in the request. */
  long number() {
    return number;
  }

  /**
   * Continues to read.
   *
   * @param in the bytes that have come; those left in it after {@code false} must come first the
   *     next time
   * @return whether a request is complete
   * @throws ProtocolException if the bytes are not a request
   */
  boolean next(ByteBuffer in) throws ProtocolException {
    if (!validated && !validate(in)) {
      return false;
    }
    if (step == shape.length() && length < 0) {
      if (!in.hasRemaining()) {
        return false;
      }
      start(in.get() & 0xff);
    }
    while (step < shape.length()) {
      if (!field(in, shape.charAt(step))) {
        return false;
      }
      if (++step == shape.length() && --left > 0) {
        step = loop;
      }
    }
    return true;
  }

  private boolean validate(ByteBuffer in) throws ProtocolException {
    if (!in.hasRemaining()) {
      return false;
    }
    byte first = in.get(in.position());
    boolean startsTls = first == Wire.TLS_HANDSHAKE;
    if (startsTls && in.remaining() < Wire.TLS_HEADER_BYTES) {
      return false;
    }
    if (startsTls && in.get(in.position() + 1) == Wire.TLS_MAJOR) {
      return refuseTls(in);
    }
    if (first != Wire.VALIDATE) {
      throw new ProtocolException(
          first == (byte) Wire.MAGIC
              ? "it speaks the protocol of PyTorch 2.1, where each request starts with the magic"
                  + " number; PyTorch 2.2 or newer is needed"
              : "its first byte is 0x%02x; clients of PyTorch 2.2 or newer never start with it"
                  .formatted(first));
    }
    if (in.remaining() < 1 + Integer.BYTES) {
      return false;
    }
    int magic = in.getInt(in.position() + 1);
    if (magic != Wire.MAGIC) {
      throw new ProtocolException(
          ("its first request has 0x%08x instead of the magic number 0x%08x; it speaks the protocol"
                  + " of PyTorch 2.0 or older, or another protocol")
              .formatted(magic, Wire.MAGIC));
    }
    in.position(in.position() + 1 + Integer.BYTES);
    validated = true;
    return true;
  }

  /** Sends an alert once all of a hello has come: the rest would reset the closed connection. */
  private boolean refuseTls(ByteBuffer in) throws ProtocolException {
    int end = in.position() + Wire.TLS_HEADER_BYTES;
    int length = ((in.get(end - 2) & 0xff) << 8) | (in.get(end - 1) & 0xff);
    if (in.limit() - end < Math.min(length, Wire.TLS_MOST_BYTES)) {
      return false;
    }
    replies.putRaw(Wire.TLS_ALERT);
    throw new ProtocolException(
        "it starts TLS, which this server does not use; " + TlsRefusedException.SAME);
  }

  private void start(int next) throws ProtocolException {
    String found = Wire.shape(next);
    if (found == null) {
      throw new ProtocolException("unknown query " + next);
    }
    gate.require(next);
    query = next;
    shape = found;
    step = 0;
    left = 0;
    bytes = 0;
  }

  private boolean field(ByteBuffer in, char kind) throws ProtocolException {
    return switch (kind) {
      case '*' -> count(in);
      case 'K' -> key(in);
      case 'B' -> value(in);
      case 'N' -> {
        if (in.remaining() < Long.BYTES) {
          yield false;
        }
        number = in.getLong();
        yield true;
      }
      case 'R' -> {
        if (in.remaining() < RAW_BYTES) {
          yield false;
        }
        take(RAW_BYTES + ITEM_BYTES);
        byte[] raw = new byte[RAW_BYTES];
        in.get(raw);
        values.add(raw);
        yield true;
      }
      default -> {
        if (in.remaining() < Integer.BYTES) {
          yield false;
        }
        number = in.getInt();
        yield true;
      }
    };
  }

  private boolean count(ByteBuffer in) throws ProtocolException {
    if (in.remaining() < Long.BYTES) {
      return false;
    }
    left = limited(in.getLong(), Store.MAX_KEYS, "keys in a request");
    loop = step + 1;
    if (left == 0) {
      step = shape.length() - 1;
    }
    return true;
  }

  private boolean key(ByteBuffer in) throws ProtocolException {
    if (in.remaining() < Long.BYTES) {
      return false;
    }
    int size = limited(in.getLong(in.position()), Store.MAX_KEY_BYTES + 1L, "bytes in a key");
    if (in.remaining() < Long.BYTES + size) {
      return false;
    }
    grow(size);
    take(size + ITEM_BYTES);
    int start = in.position() + Long.BYTES;
    keys.add(new String(in.array(), in.arrayOffset() + start, size, KeyText.BYTES));
    in.position(start + size);
    return true;
  }

  private boolean value(ByteBuffer in) throws ProtocolException {
    if (length < 0) {
      if (in.remaining() < Long.BYTES) {
        return false;
      }
      length = limited(in.getLong(), Store.MAX_VALUE_BYTES, "bytes in a value");
      grow(length);
      filled = 0;
      int first = Math.min(length, Math.max(in.remaining(), FIRST_ARRAY));
      take(first + ITEM_BYTES);
      value = new byte[first];
    }
    int size = Math.min(length - filled, in.remaining());
    if (value.length < filled + size) {
      int larger = Math.min(length, Math.max(filled + size, 2 * value.length));
      take(larger - value.length);
      value = Arrays.copyOf(value, larger);
    }
    in.get(value, filled, size);
    filled += size;
    if (filled < length) {
      return false;
    }
    values.add(value);
    value = Arguments.NO_BYTES;
    length = -1;
    return true;
  }

  private void grow(int size) throws ProtocolException {
    bytes += size;
    if (bytes > MAX_REQUEST_BYTES) {
      throw new ProtocolException("a request has more than " + MAX_REQUEST_BYTES + " bytes");
    }
  }

  private static int limited(long given, long limit, String what) throws ProtocolException {
    if (given < 0 || given > limit) {
      throw new ProtocolException("%d %s, at most %d are allowed".formatted(given, what, limit));
    }
    return (int) given;
  }
}
