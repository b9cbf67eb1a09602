package dev.tutti.store;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import dev.tutti.StoreException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;
import org.openjdk.jcstress.infra.results.L_Result;
import org.openjdk.jcstress.infra.results.ZZL_Result;

/** Races between calls of an in-memory store. */
public final class HashStoreRaces {
  private static final Duration LONG = Duration.ofSeconds(10);

  private HashStoreRaces() {}

  @JCStressTest
  @Outcome(id = "value 42", expect = ACCEPTABLE, desc = "woken, with all that was before the write")
  @State
  public static class WaitAgainstSet {
    private final HashStore store = new HashStore();
    private int data;

    @Actor
    public void writer() {
      data = 42;
      store.set("key", bytes("value"));
    }

    @Actor
    public void waiter(L_Result result) {
      try {
        store.await(List.of("key"), LONG);
        result.r1 = text(store.get("key", Duration.ZERO)) + " " + data;
      } catch (StoreException e) {
        result.r1 = e.toString();
      }
    }
  }

  @JCStressTest
  @Outcome(id = "a b", expect = ACCEPTABLE, desc = "both values at one instant")
  @State
  public static class GetTwoAgainstSets {
    private final HashStore store = new HashStore();

    @Actor
    public void writer() {
      store.set("first", bytes("a"));
      store.set("second", bytes("b"));
    }

    @Actor
    public void waiter(L_Result result) {
      try {
        List<byte[]> values = store.multiGet(List.of("second", "first"), LONG);
        result.r1 = text(values.get(1)) + " " + text(values.get(0));
      } catch (StoreException e) {
        result.r1 = e.toString();
      }
    }
  }

  @JCStressTest
  @Outcome(id = "1, 2, 2", expect = ACCEPTABLE, desc = "each counted once")
  @Outcome(id = "2, 1, 2", expect = ACCEPTABLE, desc = "each counted once")
  @State
  public static class AddAgainstAdd {
    private final HashStore store = new HashStore();

    @Actor
    public void one(III_Result result) {
      result.r1 = (int) store.add("key", 1);
    }

    @Actor
    public void other(III_Result result) {
      result.r2 = (int) store.add("key", 1);
    }

    @Arbiter
    public void arbiter(III_Result result) {
      result.r3 = (int) store.add("key", 0);
    }
  }

  @JCStressTest
  @Outcome(id = "true, false, a", expect = ACCEPTABLE, desc = "the first won")
  @Outcome(id = "false, true, b", expect = ACCEPTABLE, desc = "the second won")
  @State
  public static class SwapAgainstSwap {
    private final HashStore store = new HashStore();

    @Actor
    public void one(ZZL_Result result) {
      result.r1 = store.compareSet("key", null, bytes("a")).stored();
    }

    @Actor
    public void other(ZZL_Result result) {
      result.r2 = store.compareSet("key", null, bytes("b")).stored();
    }

    @Arbiter
    public void arbiter(ZZL_Result result) {
      result.r3 = text(store.get("key", Duration.ZERO));
    }
  }

  @JCStressTest
  @Outcome(id = "item 0", expect = ACCEPTABLE, desc = "handed over, none left")
  @State
  public static class PopAgainstPush {
    private final HashStore store = new HashStore();

    @Actor
    public void producer() {
      store.queuePush("queue", bytes("item"));
    }

    @Actor
    public void consumer(L_Result result) {
      try {
        result.r1 = text(store.queuePop("queue", LONG)) + " " + store.queueLength("queue");
      } catch (StoreException e) {
        result.r1 = e.toString();
      }
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
