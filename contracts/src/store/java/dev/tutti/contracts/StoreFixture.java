package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.Store;
import dev.tutti.StoreSilentException;
import dev.tutti.spi.Time;
import java.time.Duration;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** The store and the threads of the tests in {@link StoreContract}. */
interface StoreFixture {
  Duration ZERO = Duration.ZERO;

  /** A time long enough for everything that is expected to happen. */
  Duration LONG = Duration.ofSeconds(60);

  /** The deadline of calls that are expected to time out. */
  Duration SHORT = Duration.ofMillis(150);

  Store store();

  Calls calls();

  boolean acknowledges();

  /** Returns the time of the store and of the test. */
  Time time();

  /**
   * Returns what a call with little time throws, or null. A server that does not answer such a call
   * within its second is only slow, so the call is repeated.
   */
  static Throwable thrownBy(ThrowingCallable call) {
    Throwable thrown;
    do {
      thrown = catchThrowable(call);
    } while (thrown instanceof StoreSilentException);
    return thrown;
  }

  static byte[] bytes(int... values) {
    byte[] bytes = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      bytes[i] = (byte) values[i];
    }
    return bytes;
  }
}
