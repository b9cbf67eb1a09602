package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.chrono.Milliseconds;
import org.bytedeco.pytorch.ByteVector;
import org.bytedeco.pytorch.Store;
import org.bytedeco.pytorch.StringVector;

/** Runs the {@code store_…} operations of a script on the store without prefixes. */
final class PeerStoreOperations {
  private PeerStoreOperations() {}

  /** Returns the reply as words, or null if the line is not an operation of this class. */
  static List<String> run(Store store, ScriptLine line) {
    switch (line.op()) {
      case "store_set" -> store.set(key(line), bytes(line, 1));
      case "store_append" -> store.append(key(line), bytes(line, 1));
      case "store_queue_push" -> store.queuePush(key(line), bytes(line, 1));
      case "store_wait" -> {
        if (line.options().containsKey("timeout")) {
          store._wait(keys(line), new Milliseconds(Long.parseLong(line.required("timeout"))));
        } else {
          store._wait(keys(line));
        }
      }
      default -> {
        return List.of(query(store, line));
      }
    }
    return List.of();
  }

  private static String query(Store store, ScriptLine line) {
    return switch (line.op()) {
      case "store_get" -> text(store.get(key(line)));
      case "store_add" -> "" + store.add(key(line), line.number(1, "the amount"));
      case "store_compare_set" -> text(store.compareSet(key(line), bytes(line, 1), bytes(line, 2)));
      case "store_check" -> "" + store.check(keys(line));
      case "store_delete" -> "" + store.deleteKey(key(line));
      case "store_num_keys" -> "" + store.getNumKeys();
      case "store_list_keys" -> list(store.listKeys());
      case "store_queue_pop" ->
          text(store.queuePop(key(line), Boolean.parseBoolean(line.option("block", "true"))));
      case "store_queue_len" -> "" + store.queueLen(key(line));
      default -> throw new IllegalArgumentException("no such operation: " + line.op());
    };
  }

  private static String key(ScriptLine line) {
    return line.word(0, "the key");
  }

  private static StringVector keys(ScriptLine line) {
    return new StringVector(line.words().toArray(String[]::new));
  }

  private static ByteVector bytes(ScriptLine line, int position) {
    String text = line.word(position, "the value");
    return new ByteVector(text.equals("-") ? new byte[0] : text.getBytes(UTF_8));
  }

  private static String text(ByteVector bytes) {
    byte[] content = new byte[Math.toIntExact(bytes.size())];
    for (int i = 0; i < content.length; i++) {
      content[i] = bytes.get(i);
    }
    return content.length == 0 ? "-" : new String(content, UTF_8);
  }

  private static String list(StringVector keys) {
    List<String> names = new ArrayList<>();
    Arrays.stream(keys.get()).map(BytePointer::getString).sorted().forEach(names::add);
    return names.isEmpty() ? "-" : String.join(",", names);
  }
}
