package dev.tutti.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Store;
import dev.tutti.StoreClosedException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.spi.Wills;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PrefixStoreTest {
  private final HashStore below = new HashStore();
  private final PrefixStore store = new PrefixStore("group", below);

  @Test
  void aWillIsLeftWithAStoreBelowThatTakesWills() {
    List<Object> wills = new ArrayList<>();
    Store able =
        (Store)
            Proxy.newProxyInstance(
                Store.class.getClassLoader(),
                new Class<?>[] {Store.class, Wills.class},
                (proxy, method, arguments) -> wills.add(arguments[0]));
    assertThat(Wills.leave(new PrefixStore("group", able), "log/", new byte[1])).isTrue();
    assertThat(wills).containsExactly("group/log/");
    assertThat(Wills.leave(store, "log/", new byte[1])).isFalse();
  }

  @Test
  void putsItsPrefixAndASlashBeforeEachKey() {
    store.set("key", "value");
    store.queuePush("queue", new byte[] {1});
    assertThat(below.get("group/key")).asString(UTF_8).isEqualTo("value");
    assertThat(below.queueLength("group/queue")).isEqualTo(1);
  }

  @Test
  void makesADoubleSlashOfAPrefixThatEndsWithOne() {
    Store nested =
        new PrefixStore("cpu/", new PrefixStore("0/", new PrefixStore("default_pg", below)));
    nested.set("0/3", "address");
    assertThat(below.listKeys()).containsExactly("default_pg/0//cpu//0/3");
  }

  @Test
  void listsOnlyItsOwnKeysAndCountsAll() {
    below.set("group", "a");
    below.set("groups/x", "a");
    below.set("group/b", "a");
    below.set("group/a/b", "a");
    assertThat(store.listKeys()).containsExactly("a/b", "b");
    assertThat(store.keyCount()).isEqualTo(4);
  }

  @Test
  void leavesTheStoreBelowOpenWhenClosed() {
    store.close();
    assertThatThrownBy(() -> store.set("key", "value")).isInstanceOf(StoreClosedException.class);
    below.set("key", "value");
    assertThat(below.check(List.of("key"))).isTrue();
  }

  @Test
  void closesTheDuplicateBelowWithTheDuplicateOfThePrefix() {
    PrefixStore copy = store.duplicate();
    copy.set("key", "value");
    copy.close();
    assertThat(store.get("key")).asString(UTF_8).isEqualTo("value");
    assertThatThrownBy(() -> copy.store().keyCount()).isInstanceOf(StoreClosedException.class);
  }

  @Test
  void keepsAnInterruptThatIsNotItsOwn() {
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> store.await(List.of("key"), Duration.ofSeconds(10)))
        .isNotInstanceOf(StoreTimeoutException.class)
        .hasMessage("interrupted while waiting")
        .hasCauseInstanceOf(InterruptedException.class);
    assertThat(Thread.interrupted()).isTrue();
  }

  @Test
  void refusesAKeyThatIsTooLongWithItsPrefix() {
    String key = "k".repeat(Store.MAX_KEY_BYTES);
    assertThatThrownBy(() -> store.set(key, "value"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("8198 bytes, at most 8192");
  }
}
