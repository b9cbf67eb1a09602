package dev.tutti.gloo.transport;

import java.nio.channels.SelectionKey;
import java.util.Arrays;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Collects the keys that a selector finds ready, to be handled later under the lock. */
final class ReadyKeys implements Consumer<SelectionKey> {
  private @Nullable SelectionKey[] keys = new @Nullable SelectionKey[16];
  private int count;

  @Override
  public void accept(SelectionKey key) {
    if (count == keys.length) {
      keys = Arrays.copyOf(keys, count * 2);
    }
    keys[count++] = key;
  }

  /**
   * Handles all collected keys, and discards them.
   *
   * @return whether there were any
   */
  boolean dispatch() {
    boolean any = count > 0;
    for (int i = 0; i < count; i++) {
      SelectionKey key = keys[i];
      keys[i] = null;
      if (key != null && key.isValid() && key.attachment() instanceof Handler handler) {
        handler.ready(key);
      }
    }
    count = 0;
    return any;
  }

  /** Discards all collected keys; channels that are ready will be found again. */
  void clear() {
    count = 0;
  }
}
