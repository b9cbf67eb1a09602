package dev.tutti.store.tcp;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;

class TcpStoreTest extends StoreContract {
  /** The protocol has no answer to a set or a push. */
  @Override
  public boolean acknowledges() {
    return false;
  }

  @Override
  protected Store open() {
    return new TcpStore(TcpStoreOptions.of("127.0.0.1", 0).withServer(true));
  }
}
