package dev.tutti.testing;

import dev.tutti.Store;
import java.time.Duration;

/** The store and the threads of the tests in {@link StoreContract}. */
interface StoreFixture {
  Duration ZERO = Duration.ZERO;

  /** A time long enough for everything that is expected to happen. */
  Duration LONG = Duration.ofSeconds(60);

  /** The deadline of calls that are expected to time out. */
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
