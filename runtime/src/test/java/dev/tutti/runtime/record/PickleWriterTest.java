package dev.tutti.runtime.record;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.tutti.json.Json;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PickleWriterTest {
  private static final Object MARK = new Object();
  private static final Object NONE = new Object();

  @TempDir Path folder;

  private static Map<String, Object> sample() {
    Map<String, Object> map = new LinkedHashMap<>();
    map.put("text", "gr\u00fc\u00df \"dich\" \\ \n");
    map.put("long", 1_764_000_000_000_000_000L);
    map.put("negative", -5_000_000_000L);
    map.put("int", -7);
    map.put("double", 1.25);
    map.put("yes", true);
    map.put("no", false);
    map.put("none", null);
    map.put("empty", List.of());
    map.put("map", Map.of());
    map.put("sizes", List.of(List.of(2L, 3L), List.of()));
    return map;
  }

  /** Reads what the writer may write, following the rules of protocol 2. */
  private static Object read(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    Deque<Object> stack = new ArrayDeque<>();
    while (true) {
      int code = in.get() & 0xff;
      switch (code) {
        case 0x80 -> assertThat(in.get()).isEqualTo((byte) 2);
        case 'N' -> stack.push(NONE);
        case 0x88 -> stack.push(true);
        case 0x89 -> stack.push(false);
        case 'J' -> stack.push((long) in.getInt());
        case 0x8a -> {
          assertThat(in.get()).isEqualTo((byte) 8);
          stack.push(in.getLong());
        }
        case 'G' -> stack.push(in.order(ByteOrder.BIG_ENDIAN).getDouble());
        case 'X' -> {
          byte[] text = new byte[in.getInt()];
          in.get(text);
          stack.push(new String(text, StandardCharsets.UTF_8));
        }
        case '}' -> stack.push(new LinkedHashMap<>());
        case ']' -> stack.push(new ArrayList<>());
        case '(' -> stack.push(MARK);
        case 'u', 'e' -> {
          List<Object> items = new ArrayList<>();
          for (Object top = stack.pop(); !top.equals(MARK); top = stack.pop()) {
            items.addFirst(top.equals(NONE) ? null : top);
          }
          fill(stack.getFirst(), items);
        }
        case '.' -> {
          assertThat(in.hasRemaining()).isFalse();
          return stack.pop();
        }
        default -> throw new AssertionError("opcode " + code);
      }
      in.order(ByteOrder.LITTLE_ENDIAN);
    }
  }

  @SuppressWarnings("unchecked")
  private static void fill(Object target, List<Object> items) {
    if (target instanceof Map<?, ?> map) {
      for (int i = 0; i < items.size(); i += 2) {
        ((Map<Object, Object>) map).put(items.get(i), items.get(i + 1));
      }
    } else {
      ((List<Object>) target).addAll(items);
    }
  }

  @Test
  void whatIsWrittenIsRead() {
    Map<String, Object> expected = sample();
    expected.put("int", -7L);
    assertThat(read(PickleWriter.write(sample()))).isEqualTo(expected);
  }

  @Test
  void whatPythonHasNoPlainTypeForIsRefused() {
    assertThatThrownBy(() -> PickleWriter.write(List.of(new Object())))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("java.lang.Object");
    assertThatThrownBy(() -> Json.write(List.of(new Object())))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** Runs a line of Python with files as arguments; skips the test if Python is missing. */
  private static String python(String line, Path... files) throws Exception {
    List<String> command = new ArrayList<>(List.of("python3", "-c", line));
    Arrays.stream(files).map(Path::toString).forEach(command::add);
    Process process;
    try {
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      assumeTrue(false, "no python3: " + e.getMessage());
      return "";
    }
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(output).isZero();
    return output.trim();
  }

  @Test
  void pythonReadsTheSameFromBoth() throws Exception {
    Path pickle = folder.resolve("a.pickle");
    Path json = folder.resolve("a.json");
    Files.write(pickle, PickleWriter.write(sample()));
    Files.writeString(json, Json.write(sample()));
    String line =
        "import json,pickle,sys; p=pickle.load(open(sys.argv[1],'rb'));"
            + " j=json.load(open(sys.argv[2],encoding='utf-8'));"
            + " print(p==j, type(p['long']).__name__, p['none'], p['yes'], p['sizes'], len(p))";
    assertThat(python(line, pickle, json)).isEqualTo("True int None True [[2, 3], []] 11");
  }
}
