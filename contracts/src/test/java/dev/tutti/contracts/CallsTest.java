package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
class CallsTest {
  private final List<String> closed = new ArrayList<>();

  @Test
  void allHandlesAndThreadsEndAlsoWhereAHandleFails() throws Exception {
    Calls calls = new Calls();
    for (String name : List.of("bad", "good")) {
      calls.duplicate(duplicating(name));
    }
    CountDownLatch runs = new CountDownLatch(1);
    Future<?> waiting =
        calls.run(
            () -> {
              runs.countDown();
              new CountDownLatch(1).await();
            });
    Waiting.open(runs);
    assertThatThrownBy(calls::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("cannot close");
    assertThat(closed).containsExactly("bad", "good");
    Calls.failed(waiting, InterruptedException.class);
  }

  /** Creates a store that is its own handle and records that it was closed. */
  private Store duplicating(String name) {
    return (Store)
        Proxy.newProxyInstance(
            Store.class.getClassLoader(),
            new Class<?>[] {Store.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("duplicate")) {
                return proxy;
              }
              assertThat(method.getName()).isEqualTo("close");
              closed.add(name);
              if (name.equals("bad")) {
                throw new IllegalStateException("cannot close");
              }
              return null;
            });
  }
}
