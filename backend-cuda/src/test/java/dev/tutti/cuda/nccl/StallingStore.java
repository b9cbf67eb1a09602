package dev.tutti.cuda.nccl;

import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A store that does not answer for a while, as if its host were cut off. */
final class StallingStore implements InvocationHandler {
  private static final long MOST_SECONDS = 120;

  private final Store store;
  private final Stall stall;

  /** Starts and ends the silence of stores. */
  static final class Stall {
    private volatile @Nullable CountDownLatch over;

    void begin() {
      over = new CountDownLatch(1);
    }

    void end() {
      CountDownLatch current = over;
      if (current != null) {
        current.countDown();
      }
    }

    private void await(String call) throws InterruptedException {
      CountDownLatch current = over;
      if (current != null && !current.await(MOST_SECONDS, TimeUnit.SECONDS)) {
        throw new StoreTimeoutException("stalled: " + call);
      }
    }
  }

  private StallingStore(Store store, Stall stall) {
    this.store = store;
    this.stall = stall;
  }

  public static Store of(Store store, Stall stall) {
    return (Store)
        Proxy.newProxyInstance(
            StallingStore.class.getClassLoader(),
            new Class<?>[] {Store.class},
            new StallingStore(store, stall));
  }

  @Override
  public @Nullable Object invoke(Object proxy, Method method, Object @Nullable [] arguments)
      throws Throwable {
    String call = method.getName();
    if (!call.equals("timeout") && !call.equals("close")) {
      stall.await(call);
    }
    try {
      Object result = method.invoke(store, arguments);
      return result instanceof Store made ? of(made, stall) : result;
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
