package dev.tutti.testing;

import dev.tutti.Store;
import dev.tutti.store.HashStore;

// @start region="suite"
class HashStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new HashStore();
  }
}
// @end
