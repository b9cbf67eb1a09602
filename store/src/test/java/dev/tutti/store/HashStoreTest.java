package dev.tutti.store;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;

// @start region="suite"
class HashStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new HashStore();
  }
}
// @end
