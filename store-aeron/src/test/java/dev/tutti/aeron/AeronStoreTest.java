package dev.tutti.aeron;

import dev.tutti.Store;
import dev.tutti.testing.StoreContract;
import org.junit.jupiter.api.Order;

@Order(1)
class AeronStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new AeronStore(AeronStoreOptions.of("127.0.0.1", 0).withServer(true));
  }
}
