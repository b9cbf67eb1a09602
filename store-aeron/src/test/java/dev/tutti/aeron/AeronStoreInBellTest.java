package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.testing.StoreContract;
import org.junit.jupiter.api.BeforeAll;

/** Runs the contract where client and server sleep in their bells. */
class AeronStoreInBellTest extends StoreContract {
  @BeforeAll
  static void needsFutex() {
    InBell.link();
  }

  @Override
  protected Store open() throws InterruptedException {
    return InBell.ready(new AeronStore(AeronStoreOptions.of("127.0.0.1", 0).withServer(true)));
  }
}
