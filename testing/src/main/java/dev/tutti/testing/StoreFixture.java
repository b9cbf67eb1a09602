package dev.tutti.testing;

import dev.tutti.Store;
import java.time.Duration;

/** Gives the tests of {@link StoreContract} their store and their threads. */
interface StoreFixture {
  Duration ZERO = Duration.ZERO;

  /** Long enough for whatever is expected to happen. */
  Duration LONG = Duration.ofSeconds(60);

  /** The deadline of calls that are expected to run into it. */
  Duration SHORT = Duration.ofMillis(150);

  Store store();

  Calls calls();

  static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
