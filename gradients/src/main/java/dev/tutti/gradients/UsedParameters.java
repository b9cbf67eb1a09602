package dev.tutti.gradients;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;

/** The exchange, if the options say so, of which parameters got a gradient on any rank. */
final class UsedParameters {
  private final ProcessGroup group;
  private final boolean exchanged;
  private final Tensor used;

  UsedParameters(ProcessGroup group, boolean exchanged, int parameters) {
    this.group = group;
    this.exchanged = exchanged;
    this.used = Tensor.allocate(DType.UINT8, exchanged ? parameters : 0);
  }

  boolean isExchanged() {
    return exchanged;
  }

  void set(int parameter, boolean isUsed) {
    used.setLong(parameter, isUsed ? 1 : 0);
  }

  void exchange() {
    group.allReduce(used, ReduceOp.MAX);
  }

  boolean isUsed(int parameter) {
    return !exchanged || used.getLong(parameter) != 0;
  }
}
