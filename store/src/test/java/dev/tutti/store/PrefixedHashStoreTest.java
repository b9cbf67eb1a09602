package dev.tutti.store;

import dev.tutti.Store;
import dev.tutti.contracts.StoreContract;

class PrefixedHashStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new PrefixStore("outer/", new PrefixStore("inner", new HashStore()));
  }
}
