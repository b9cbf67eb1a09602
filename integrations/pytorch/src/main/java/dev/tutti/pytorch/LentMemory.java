package dev.tutti.pytorch;

import dev.tutti.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.PointerConsumer;

/** The memory of Tutti tensors that PyTorch uses, which must not be freed in the meantime. */
final class LentMemory {
  /** The function that PyTorch calls, from any thread, when it no longer uses some memory. */
  static final PointerConsumer RETURN =
      new PointerConsumer() {
        @Override
        public void call(Pointer memory) {
          LENT.computeIfPresent(
              memory.address(),
              (_, tensors) -> {
                tensors.removeLast();
                return tensors.isEmpty() ? null : tensors;
              });
        }
      };

  private static final Map<Long, List<Tensor>> LENT = new ConcurrentHashMap<>();

  private LentMemory() {}

  /**
   * Keeps a tensor until {@link #RETURN} has been called as often as this method was for its
   * memory.
   */
  static Pointer lend(Tensor tensor) {
    long address = tensor.segment().address();
    LENT.compute(
        address,
        (_, tensors) -> {
          List<Tensor> all = tensors == null ? new ArrayList<>() : tensors;
          all.add(tensor);
          return all;
        });
    return new Address(address);
  }

  /** Returns the number of tensors at an address that PyTorch uses. */
  static int count(long address) {
    return LENT.getOrDefault(address, List.of()).size();
  }

  private static final class Address extends Pointer {
    Address(long address) {
      this.address = address;
    }
  }
}
