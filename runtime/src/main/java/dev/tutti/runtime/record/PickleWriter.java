package dev.tutti.runtime.record;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Writes maps, lists, strings, numbers, booleans and null in Python's pickle format, protocol 2:
 * dicts, lists, str, int, float, bool and None, each written anew every time.
 */
public final class PickleWriter {
  private static final int LONGEST = 8;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream(4096);

  private PickleWriter() {}

  /**
   * Writes a value.
   *
   * @throws IllegalArgumentException if the value contains anything else
   */
  public static byte[] write(@Nullable Object value) {
    PickleWriter writer = new PickleWriter();
    writer.out.write(0x80);
    writer.out.write(2);
    writer.append(value);
    writer.out.write('.');
    return writer.out.toByteArray();
  }

  private void append(@Nullable Object value) {
    switch (value) {
      case null -> out.write('N');
      case Boolean flag -> out.write(flag ? 0x88 : 0x89);
      case String text -> {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.write('X');
        out.writeBytes(little(4).putInt(bytes.length).array());
        out.writeBytes(bytes);
      }
      case Integer number -> integer(number);
      case Long number -> integer(number);
      case Double number -> {
        out.write('G');
        out.writeBytes(ByteBuffer.allocate(Double.BYTES).putDouble(number).array());
      }
      case Map<?, ?> map -> {
        out.write('}');
        out.write('(');
        map.forEach(
            (key, held) -> {
              append(key);
              append(held);
            });
        out.write('u');
      }
      case Iterable<?> list -> {
        out.write(']');
        out.write('(');
        list.forEach(this::append);
        out.write('e');
      }
      default -> throw new IllegalArgumentException("cannot be pickled: " + value.getClass());
    }
  }

  private void integer(long number) {
    if (number == (int) number) {
      out.write('J');
      out.writeBytes(little(4).putInt((int) number).array());
    } else {
      out.write(0x8a);
      out.write(LONGEST);
      out.writeBytes(little(LONGEST).putLong(number).array());
    }
  }

  private static ByteBuffer little(int length) {
    return ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
  }
}
