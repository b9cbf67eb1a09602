package dev.tutti.internal;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.SymmetricMemory;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Operation;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests what becomes of symmetric memory that nobody waits for any more. */
class SymmetricAllocationTest {
  private final List<String> calls = new ArrayList<>();

  private final SymmetricMemory memory = played(SymmetricMemory.class, null);
  private final Backend backend = played(Backend.class, memory);
  private final Operation op = played(Operation.class, null);

  private <T> T played(Class<T> type, Object result) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              calls.add(method.getName());
              return result;
            }));
  }

  @Test
  void whatIsAllocatedForACallerThatLeftIsFreed() throws Exception {
    SymmetricAllocation allocation = new SymmetricAllocation(8);
    allocation.discard();
    allocation.run(backend, op);
    assertThat(calls).containsExactly("allocateSymmetric", "close");
  }

  @Test
  void whatACallerLeavesIsFreed() throws Exception {
    SymmetricAllocation allocation = new SymmetricAllocation(8);
    allocation.run(backend, op);
    assertThat(allocation.result()).isSameAs(memory);
    allocation.discard();
    assertThat(calls).containsExactly("allocateSymmetric", "close");
  }
}
