package dev.tutti.fake.failure;

import dev.tutti.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

/** A store that can be made to hang, like one whose host was stopped or cut off. */
final class StuckStore {
  private static final Set<String> QUIET =
      Set.of("duplicate", "close", "timeout", "toString", "hashCode", "equals");

  final CountDownLatch released = new CountDownLatch(1);
  boolean stuck;

  /** Returns a view of a store that can hang while the store itself serves other ranks. */
  Store around(Store store) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (stuck && !QUIET.contains(method.getName())) {
                released.await();
              }
              try {
                Object result = method.invoke(store, arguments);
                return method.getName().equals("duplicate") ? around((Store) result) : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
