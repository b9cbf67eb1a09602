package dev.tutti.cli.trace;

import java.math.BigInteger;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A reader of Python pickles that hold only dicts, lists, tuples, strings, numbers, booleans and
 * None, of protocol 2 or later. Nothing in the pickle can name a class, so none of it is executed.
 */
final class PickleReader {
  private final ByteBuffer in;
  private final List<@Nullable Object> stack = new ArrayList<>();
  private final List<Integer> marks = new ArrayList<>();
  private final Map<Integer, @Nullable Object> memo = new HashMap<>();

  private PickleReader(byte[] bytes) {
    in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /**
   * Reads a pickle.
   *
   * @throws IllegalArgumentException if it is not a pickle, or holds more than plain values
   */
  static @Nullable Object read(byte[] bytes) {
    PickleReader reader = new PickleReader(bytes);
    try {
      while (reader.step()) {}
      return reader.pop();
    } catch (BufferUnderflowException | IndexOutOfBoundsException | ClassCastException e) {
      throw new IllegalArgumentException(
          "not a pickle of plain values: it is truncated or malformed", e);
    }
  }

  private boolean step() {
    int code = in.get() & 0xff;
    switch (code) {
      case 0x80 -> in.get();
      case 0x95 -> in.getLong();
      case 0x94 -> memo.put(memo.size(), top());
      case 'q' -> memo.put(in.get() & 0xff, top());
      case 'r' -> memo.put(in.getInt(), top());
      case 'h' -> stack.add(memo.get(in.get() & 0xff));
      case 'j' -> stack.add(memo.get(in.getInt()));
      case 'N' -> stack.add(null);
      case 0x88 -> stack.add(true);
      case 0x89 -> stack.add(false);
      case 'J' -> stack.add((long) in.getInt());
      case 'K' -> stack.add((long) (in.get() & 0xff));
      case 'M' -> stack.add((long) (in.getShort() & 0xffff));
      case 0x8a -> stack.add(integer(bytes(in.get() & 0xff)));
      case 'G' -> stack.add(Double.longBitsToDouble(Long.reverseBytes(in.getLong())));
      case 'X' -> stack.add(new String(bytes(in.getInt()), StandardCharsets.UTF_8));
      case 0x8c -> stack.add(new String(bytes(in.get() & 0xff), StandardCharsets.UTF_8));
      case '}' -> stack.add(new LinkedHashMap<String, @Nullable Object>());
      case ']' -> stack.add(new ArrayList<@Nullable Object>());
      case ')' -> stack.add(new ArrayList<@Nullable Object>());
      case '(' -> marks.add(stack.size());
      case 't' -> stack.add(sinceMark());
      case 0x85 -> stack.add(last(1));
      case 0x86 -> stack.add(last(2));
      case 0x87 -> stack.add(last(3));
      case 'a' -> append(last(1));
      case 'e' -> append(sinceMark());
      case 's' -> put(last(2));
      case 'u' -> put(sinceMark());
      case '.' -> {
        return false;
      }
      default ->
          throw new IllegalArgumentException(
              "not a pickle of plain values: unsupported opcode 0x" + Integer.toHexString(code));
    }
    return true;
  }

  private byte[] bytes(int length) {
    if (length < 0 || length > in.remaining()) {
      throw new BufferUnderflowException();
    }
    byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }

  private static Long integer(byte[] little) {
    byte[] big = new byte[little.length];
    for (int i = 0; i < big.length; i++) {
      big[i] = little[little.length - 1 - i];
    }
    return big.length == 0 ? 0L : new BigInteger(big).longValue();
  }

  private @Nullable Object top() {
    return stack.getLast();
  }

  private @Nullable Object pop() {
    return stack.removeLast();
  }

  private List<@Nullable Object> sinceMark() {
    return last(stack.size() - marks.removeLast());
  }

  private List<@Nullable Object> last(int count) {
    List<@Nullable Object> end = stack.subList(stack.size() - count, stack.size());
    List<@Nullable Object> taken = new ArrayList<>(end);
    end.clear();
    return taken;
  }

  @SuppressWarnings("unchecked") // a wrong type is detected where it is used
  private void append(List<@Nullable Object> items) {
    ((List<@Nullable Object>) Objects.requireNonNull(top())).addAll(items);
  }

  @SuppressWarnings("unchecked") // a wrong type is detected where it is used
  private void put(List<@Nullable Object> items) {
    Map<String, @Nullable Object> map =
        (Map<String, @Nullable Object>) Objects.requireNonNull(top());
    for (int i = 0; i + 1 < items.size(); i += 2) {
      map.put(String.valueOf(items.get(i)), items.get(i + 1));
    }
  }
}
