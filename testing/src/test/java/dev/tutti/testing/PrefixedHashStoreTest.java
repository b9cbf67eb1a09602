package dev.tutti.testing;

import dev.tutti.Store;
import dev.tutti.store.HashStore;
import dev.tutti.store.PrefixStore;

class PrefixedHashStoreTest extends StoreContract {
  @Override
  protected Store open() {
    return new PrefixStore("outer/", new PrefixStore("inner", new HashStore()));
  }
}
