package dev.tutti.runtime.group;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.store.HashStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A store that can be made to hang, like one whose host was stopped or cut off. */
public final class StuckStore {
  private static final Set<String> QUIET =
      Set.of("duplicate", "close", "timeout", "toString", "hashCode", "equals");

  public final CountDownLatch released = new CountDownLatch(1);
  public volatile boolean stuck;

  public Store store() {
    return around(new HashStore());
  }

  /** Returns a view of a store that can hang while the store itself serves other ranks. */
  public Store around(Store store) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (stuck && !QUIET.contains(method.getName())) {
                if (!released.await(240, TimeUnit.SECONDS)) {
                  throw new StoreException("the store hung");
                }
              }
              Object result;
              try {
                result = method.invoke(store, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
              return method.getName().equals("duplicate") ? around((Store) result) : result;
            });
  }
}
