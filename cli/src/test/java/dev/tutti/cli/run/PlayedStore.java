package dev.tutti.cli.run;

import dev.tutti.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;

/** A store whose calls pass through unless an objection stops them. */
final class PlayedStore {
  private PlayedStore() {}

  /** A check that sees each call before it is made, and may throw its outcome. */
  interface Objection {
    void look(String method, Object[] arguments, boolean onDuplicate);
  }

  /** Wraps a store and its duplicates. */
  static Store of(Store store, Objection objection) {
    return of(store, objection, false);
  }

  private static Store of(Store handle, Objection objection, boolean duplicate) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (_, method, arguments) -> {
              objection.look(method.getName(), arguments, duplicate);
              try {
                Object result = method.invoke(handle, arguments);
                return method.getName().equals("duplicate")
                    ? of((Store) result, objection, true)
                    : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
