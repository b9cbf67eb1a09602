package dev.tutti.cli.run;

import dev.tutti.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/**
 * A store whose calls pass through until it is lost; then every handle of it fails, even in
 * mid-call.
 */
final class LosableStore {
  private final List<Store> handles = new CopyOnWriteArrayList<>();
  private final Store store;

  LosableStore(Store store) {
    this.store = wrap(store);
  }

  Store store() {
    return store;
  }

  void lose() {
    handles.forEach(Store::close);
  }

  private Store wrap(Store handle) {
    handles.add(handle);
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (_, method, arguments) -> {
              try {
                Object result = method.invoke(handle, arguments);
                return method.getName().equals("duplicate") ? wrap((Store) result) : result;
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }
}
