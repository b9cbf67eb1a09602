package dev.tutti.store.table;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.table.KeyTable.KeyWaiter;
import dev.tutti.store.table.KeyTable.KeyWaiter.Kind;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class KeyTableTest {
  private static final byte[] VALUE = {1};

  private final KeyTable table = new KeyTable();
  private final List<String> woken = new ArrayList<>();

  private KeyWaiter consumer(String name, String... keys) {
    KeyWaiter waiter = new KeyWaiter(List.of(keys), Kind.CONSUMER, () -> woken.add(name));
    assertThat(table.await(waiter)).isFalse();
    return waiter;
  }

  @Test
  void aPushWakesOneConsumer() {
    consumer("first", "queue");
    consumer("second", "queue");
    table.push("queue", VALUE);
    assertThat(woken).containsExactly("first");
    table.push("queue", VALUE);
    assertThat(woken).containsExactly("first", "second");
  }

  @Test
  void aPushPassesAConsumerThatMissesAnotherKey() {
    consumer("first", "key", "queue");
    consumer("second", "queue");
    table.push("queue", VALUE);
    assertThat(woken).containsExactly("second");
  }

  @Test
  void aPushPassesAConsumerWhoseOtherKeyWasDeleted() {
    consumer("first", "key", "queue");
    table.set("key", VALUE);
    table.delete("key");
    consumer("second", "queue");
    table.push("queue", VALUE);
    assertThat(woken).containsExactly("second");
    table.set("key", VALUE);
    assertThat(woken).containsExactly("second", "first");
  }

  @Test
  void aConsumerMayLeaveWhileAnotherIsWoken() {
    List<KeyWaiter> others = new ArrayList<>();
    KeyWaiter looking =
        new KeyWaiter(List.of("queue"), Kind.KEY, () -> others.forEach(table::cancel));
    assertThat(table.await(looking)).isFalse();
    others.add(consumer("gone", "queue"));
    consumer("second", "queue");
    table.push("queue", VALUE);
    assertThat(woken).containsExactly("second");
  }
}
