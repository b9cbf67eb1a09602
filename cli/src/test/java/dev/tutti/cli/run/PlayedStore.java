package dev.tutti.cli.run;

import dev.tutti.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;

/** Hands calls on to a store, unless somebody objects to one. */
final class PlayedStore {
  private PlayedStore() {}

  /** Looks at a call before it is made, and may throw what becomes of it. */
  interface Objection {
    void look(String method, boolean onDuplicate);
  }

  /** Wraps a store, and what is duplicated from it. */
  static Store of(Store store, Objection objection) {
    return of(store, objection, false);
  }

  private static Store of(Store handle, Objection objection, boolean duplicate) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (_, method, arguments) -> {
              objection.look(method.getName(), duplicate);
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
