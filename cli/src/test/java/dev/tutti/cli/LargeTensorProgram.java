package dev.tutti.cli;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;

/** A rank that reduces as many elements as its argument says, in two groups. */
final class LargeTensorProgram {
  private LargeTensorProgram() {}

  public static void main(String[] args) {
    try (ProcessGroup group = ProcessGroup.init();
        ProcessGroup other = group.split(0, group.rank()).orElseThrow()) {
      Tensor tensor = Tensor.allocate(DType.FLOAT32, Integer.parseInt(args[0]));
      group.allReduce(tensor);
      other.allReduce(tensor);
    }
  }
}
