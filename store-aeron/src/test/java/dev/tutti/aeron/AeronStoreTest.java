package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Order(1)
@SuppressWarnings("JUnitMethodInvoked") // to say for one when it runs
class AeronStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new AeronStore(AeronStoreOptions.of("127.0.0.1", 0).withServer(true));
  }

  /** Takes seven seconds here. */
  @Override
  @Tag("full")
  @Test
  public void keepsTheLongestValue() {
    super.keepsTheLongestValue();
  }
}
