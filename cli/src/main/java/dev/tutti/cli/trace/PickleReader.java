package dev.tutti.cli.trace;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A reader of Python pickles that hold only dicts, lists, tuples, strings, numbers, booleans and
 * None, of protocol 2 or later. Nothing in the pickle can name a class, so none of it is executed.
 */
final class PickleReader {
  private static final int DEEPEST = 100;

  /** The maximum number of values for each byte: values that occur repeatedly are stored once. */
  private static final int MOST_PER_BYTE = 16;

  private final ByteBuffer in;
  private final List<@Nullable Object> stack = new ArrayList<>();
  private final List<Integer> marks = new ArrayList<>();
  private final Map<Integer, @Nullable Object> memo = new HashMap<>();
  private long values;

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
    } catch (BufferUnderflowException e) {
      throw (IllegalArgumentException) bad("it is cut off").initCause(e);
    }
    Object value = reader.top();
    reader.count(value, 0);
    return value;
  }

  private static IllegalArgumentException bad(String what) {
    return new IllegalArgumentException("not a pickle of plain values: " + what);
  }

  /** Refuses values that contain themselves, or the same values very often. */
  private void count(@Nullable Object value, int depth) {
    if (depth > DEEPEST) {
      throw bad("its values are nested too deeply");
    }
    if (++values > (long) MOST_PER_BYTE * in.capacity()) {
      throw bad("it repeats values too often");
    }
    if (value instanceof List<?> list) {
      list.forEach(each -> count(each, depth + 1));
    } else if (value instanceof Map<?, ?> map) {
      map.values().forEach(each -> count(each, depth + 1));
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
      case 'h' -> stack.add(remembered(in.get() & 0xff));
      case 'j' -> stack.add(remembered(in.getInt()));
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
      case ']', ')' -> stack.add(new ArrayList<@Nullable Object>());
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
      default -> throw bad("unsupported opcode 0x" + Integer.toHexString(code));
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
    if (little.length > Long.BYTES) {
      throw bad("a number needs more than 64 bits");
    }
    long value = little.length > 0 && little[little.length - 1] < 0 ? -1 : 0;
    for (int i = little.length - 1; i >= 0; i--) {
      value = value << Byte.SIZE | (little[i] & 0xff);
    }
    return value;
  }

  private @Nullable Object remembered(int number) {
    if (!memo.containsKey(number)) {
      throw bad("it uses values that it does not contain");
    }
    return memo.get(number);
  }

  private @Nullable Object top() {
    requireStacked(1);
    return stack.getLast();
  }

  private List<@Nullable Object> sinceMark() {
    if (marks.isEmpty()) {
      throw bad("it ends a list that it does not start");
    }
    return last(stack.size() - marks.removeLast());
  }

  private List<@Nullable Object> last(int count) {
    requireStacked(count);
    List<@Nullable Object> end = stack.subList(stack.size() - count, stack.size());
    List<@Nullable Object> taken = new ArrayList<>(end);
    end.clear();
    return taken;
  }

  private void requireStacked(int count) {
    if (count < 0 || count > stack.size()) {
      throw bad("it uses values that it does not contain");
    }
  }

  @SuppressWarnings("unchecked") // all lists on the stack are of this type
  private void append(List<@Nullable Object> items) {
    if (!(top() instanceof List<?> list)) {
      throw bad("it appends to a value that is no list");
    }
    ((List<@Nullable Object>) list).addAll(items);
  }

  @SuppressWarnings("unchecked") // all maps on the stack are of this type
  private void put(List<@Nullable Object> items) {
    if (!(top() instanceof Map<?, ?> map) || items.size() % 2 != 0) {
      throw bad("it sets items of a value that is no dict, or keys without values");
    }
    for (int i = 0; i < items.size(); i += 2) {
      Object key = items.get(i);
      if (key instanceof List<?> || key instanceof Map<?, ?>) {
        throw bad("a key is a list or a dict");
      }
      ((Map<String, @Nullable Object>) map).put(String.valueOf(key), items.get(i + 1));
    }
  }
}
