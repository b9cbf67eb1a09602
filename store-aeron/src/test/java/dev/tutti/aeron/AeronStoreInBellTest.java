package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.contracts.Sampled;
import dev.tutti.contracts.StoreContract;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tests the contract when client and server sleep in their bells. */
@SuppressWarnings("JUnitMethodInvoked") // to say for one when it runs
@Sampled
class AeronStoreInBellTest extends StoreContract {
  @BeforeAll
  static void needsFutex() {
    InBell.link();
  }

  @Override
  protected Store open() throws InterruptedException {
    return InBell.ready(new AeronStore(AeronStoreOptions.of("127.0.0.1", 0).withServer(true)));
  }

  /** Takes seven seconds here. */
  @Override
  @Tag("full")
  @Test
  public void keepsTheLongestValue() {
    super.keepsTheLongestValue();
  }
}
