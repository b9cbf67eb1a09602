package dev.tutti.runtime.group;

import dev.tutti.CollectiveException;
import dev.tutti.OpType;
import dev.tutti.Tensor;
import dev.tutti.cpu.NanScan;
import dev.tutti.runtime.operation.GroupIdentity;
import dev.tutti.spi.Backend;
import dev.tutti.spi.Call;
import dev.tutti.spi.Operation;
import java.time.Duration;
import java.util.List;

/** Refuses tensors with a NaN among the elements that their operation reads. */
final class NanCheck {
  private final GroupIdentity identity;

  NanCheck(GroupIdentity identity) {
    this.identity = identity;
  }

  /**
   * Searches the tensors that this rank contributes to an operation; the backend searches those on
   * devices.
   *
   * @throws CollectiveException giving the position of the first NaN
   */
  void require(Operation op, Backend backend) throws Exception {
    Call call = op.call();
    boolean isReadElsewhere = call.type() == OpType.BROADCAST && call.root() != identity.rank();
    if (isReadElsewhere) {
      return;
    }
    List<Tensor> inputs = call.inputs();
    for (int i = 0; i < inputs.size(); i++) {
      Tensor input = inputs.get(i);
      Tensor dense = input.isSparse() ? input.values() : input;
      long index = dense.device().isCpu() ? NanScan.firstNan(dense) : backend.firstNan(op, dense);
      if (index >= 0) {
        String which = inputs.size() == 1 ? "the input" : "input " + i;
        throw new CollectiveException(
            which + " of rank " + identity.rank() + " has a NaN at index " + index,
            identity.failure(call.type(), 0, -1, identity.rank(), Duration.ZERO),
            null);
      }
    }
  }
}
