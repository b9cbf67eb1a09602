package dev.tutti.contracts;

import dev.tutti.Store;
import dev.tutti.spi.Time;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;

/**
 * Tests that a store fulfills the contract of {@link Store}.
 *
 * <p>A third party extends this class and implements one method, {@link #open()}. Every test runs
 * on its own store and must end within a minute, including {@link #open()} and the closing of what
 * it opened.
 *
 * {@snippet file="HashStoreTest.java" region="suite"}
 */
@Timeout(
    value = StoreContract.SECONDS,
    unit = TimeUnit.SECONDS,
    threadMode = ThreadMode.SEPARATE_THREAD)
public abstract class StoreContract
    implements StoreValueTests,
        StoreWaitTests,
        StoreQueueTests,
        StoreConcurrencyTests,
        StoreHistoryTests {
  static final int SECONDS = 300;

  private @Nullable Store store;
  private Calls calls;

  /** Creates the suite; JUnit calls this once for each test. */
  @SuppressWarnings("NullAway.Init")
  protected StoreContract() {}

  /**
   * Opens a new, empty store that is unrelated to those opened earlier.
   *
   * <p>The suite creates further handles with {@link Store#duplicate()}, and closes all of them
   * after the test.
   *
   * @return the store
   * @throws Exception if the store cannot be opened, which fails the test
   */
  protected abstract Store open() throws Exception;

  /**
   * Returns whether {@link Store#set} and {@link Store#queuePush} return only after the store has
   * carried them out; if not, another handle may see the value a little later.
   */
  @Override
  public boolean acknowledges() {
    return true;
  }

  /** Returns the time of the store and of the test: that of this machine. */
  @Override
  public Time time() {
    return Time.SYSTEM;
  }

  @BeforeEach
  @Timeout(value = SECONDS, unit = TimeUnit.SECONDS, threadMode = ThreadMode.SEPARATE_THREAD)
  final void openStore() throws Exception {
    calls = new Calls(time());
    store = open();
  }

  @AfterEach
  @Timeout(value = SECONDS, unit = TimeUnit.SECONDS, threadMode = ThreadMode.SEPARATE_THREAD)
  final void closeStore() {
    try {
      calls.close();
    } finally {
      if (store != null) {
        store.close();
      }
    }
  }

  @Override
  public final Store store() {
    return Objects.requireNonNull(store);
  }

  @Override
  public final Calls calls() {
    return calls;
  }
}
