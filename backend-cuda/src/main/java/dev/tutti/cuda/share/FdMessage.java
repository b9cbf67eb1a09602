package dev.tutti.cuda.share;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * A message with one descriptor, in the form required by {@code sendmsg(2)} and {@code recvmsg(2)}:
 * the sender, the round, and the receiver's token, with the descriptor attached.
 */
final class FdMessage {
  static final int TOKEN_BYTES = 16;

  /** The maximum length of a socket's path, including the terminating zero. */
  static final int PATH_BYTES = 108;

  private static final int MAGIC = 0x54754664;
  private static final int SENDER = 4;
  private static final int ROUND = 8;
  private static final int TOKEN = 16;
  private static final int BYTES = TOKEN + TOKEN_BYTES;

  /* The layout of struct msghdr and struct cmsghdr, and their constants. */
  private static final int HEADER_BYTES = 56;
  private static final int NAME = 0;
  private static final int NAME_LENGTH = 8;
  private static final int VECTOR = 16;
  private static final int VECTOR_COUNT = 24;
  private static final int CONTROL = 32;
  private static final int CONTROL_LENGTH = 40;
  private static final int FLAGS = 48;
  private static final int CONTROL_DATA = 16;
  private static final int RECEIVE_CONTROL_BYTES = 256;
  private static final int SOCKET_LEVEL = 1;
  private static final int RIGHTS = 1;
  private static final int CONTROL_TRUNCATED = 8;
  private static final short UNIX = 1;

  private final MemorySegment header;
  private final MemorySegment payload;
  private final MemorySegment control;

  private FdMessage(Arena arena, int controlBytes) {
    header = arena.allocate(HEADER_BYTES, 8);
    payload = arena.allocate(BYTES, 8);
    control = arena.allocate(controlBytes, 8);
    MemorySegment vector = arena.allocate(16, 8);
    vector.set(ADDRESS, 0, payload);
    vector.set(JAVA_LONG, 8, BYTES);
    header.set(ADDRESS, VECTOR, vector);
    header.set(JAVA_LONG, VECTOR_COUNT, 1);
    header.set(ADDRESS, CONTROL, control);
    header.set(JAVA_LONG, CONTROL_LENGTH, controlBytes);
  }

  /** Writes a message. */
  static FdMessage of(
      Arena arena, MemorySegment target, int sender, long round, byte[] token, int fd) {
    FdMessage message = new FdMessage(arena, CONTROL_DATA + 8);
    message.header.set(ADDRESS, NAME, target);
    message.header.set(JAVA_INT, NAME_LENGTH, (int) target.byteSize());
    message.payload.set(JAVA_INT, 0, MAGIC);
    message.payload.set(JAVA_INT, SENDER, sender);
    message.payload.set(JAVA_LONG, ROUND, round);
    MemorySegment.copy(token, 0, message.payload, JAVA_BYTE, TOKEN, TOKEN_BYTES);
    message.control.set(JAVA_LONG, 0, CONTROL_DATA + Integer.BYTES);
    message.control.set(JAVA_INT, 8, SOCKET_LEVEL);
    message.control.set(JAVA_INT, 12, RIGHTS);
    message.control.set(JAVA_INT, CONTROL_DATA, fd);
    return message;
  }

  /** Creates an empty message to receive into. */
  static FdMessage empty(Arena arena) {
    return new FdMessage(arena, RECEIVE_CONTROL_BYTES);
  }

  /** Returns a socket's address, as a {@code struct sockaddr_un}. */
  static MemorySegment address(Arena arena, String path) {
    byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
    MemorySegment address = arena.allocate(2L + bytes.length + 1, 2);
    address.set(JAVA_SHORT, 0, UNIX);
    MemorySegment.copy(bytes, 0, address, JAVA_BYTE, 2, bytes.length);
    return address;
  }

  MemorySegment header() {
    return header;
  }

  /** Returns whether what was received is a complete message with the given token. */
  boolean isValid(int received, byte[] token) {
    return received == BYTES
        && (header.get(JAVA_INT, FLAGS) & CONTROL_TRUNCATED) == 0
        && payload.get(JAVA_INT, 0) == MAGIC
        && payload.asSlice(TOKEN).mismatch(MemorySegment.ofArray(token)) == -1
        && descriptors().length == 1;
  }

  int sender() {
    return payload.get(JAVA_INT, SENDER);
  }

  long round() {
    return payload.get(JAVA_LONG, ROUND);
  }

  /** Returns the received descriptors, which now belong to this process. */
  int[] descriptors() {
    int[] all = new int[0];
    long length = header.get(JAVA_LONG, CONTROL_LENGTH);
    long at = 0;
    while (at + CONTROL_DATA <= length) {
      long entry = control.get(JAVA_LONG, at);
      if (entry < CONTROL_DATA || at + entry > length) {
        break;
      }
      if (control.get(JAVA_INT, at + 8) == SOCKET_LEVEL
          && control.get(JAVA_INT, at + 12) == RIGHTS) {
        int count = (int) ((entry - CONTROL_DATA) / Integer.BYTES);
        int before = all.length;
        all = Arrays.copyOf(all, before + count);
        for (int i = 0; i < count; i++) {
          all[before + i] = control.get(JAVA_INT, at + CONTROL_DATA + 4L * i);
        }
      }
      at += (entry + 7) & -8;
    }
    return all;
  }
}
