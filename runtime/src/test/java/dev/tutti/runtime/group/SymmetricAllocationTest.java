package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.OpType;
import dev.tutti.SymmetricMemory;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests what happens to symmetric memory for which no rank waits any more. */
class SymmetricAllocationTest {
  private final List<String> calls = new ArrayList<>();

  private final SymmetricMemory memory = played(SymmetricMemory.class, null);
  private final Backend backend = played(Backend.class, null);
  private final Operation op =
      played(Operation.class, new Call(OpType.ALLOCATE_SYMMETRIC).memory(memory));

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
    SymmetricAllocation allocation = new SymmetricAllocation(backend);
    allocation.discard();
    allocation.run(op);
    assertThat(calls).containsExactly("run", "call", "close");
  }

  @Test
  void whatACallerLeavesIsFreed() throws Exception {
    SymmetricAllocation allocation = new SymmetricAllocation(backend);
    allocation.run(op);
    assertThat(allocation.result()).isSameAs(memory);
    allocation.discard();
    assertThat(calls).containsExactly("run", "call", "close");
  }
}
