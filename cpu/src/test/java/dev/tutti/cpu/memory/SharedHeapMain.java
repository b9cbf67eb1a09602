package dev.tutti.cpu.memory;

import dev.tutti.DType;
import dev.tutti.Tensor;
import java.io.IOException;

/** Shows a tensor until its input ends. */
final class SharedHeapMain {
  private SharedHeapMain() {}

  public static void main(String[] args) throws IOException {
    Tensor tensor = Tensor.allocate(DType.INT32, 100_000);
    tensor.setLong(99_999, 4711);
    SharedHeap heap = SharedHeap.ofProcess().orElseThrow();
    System.out.println(
        heap.descriptor()
            + " "
            + heap.number()
            + " "
            + heap.byteSize()
            + " "
            + (tensor.segment().address() - heap.address()));
    int last = System.in.read();
    System.out.println(last + " " + tensor.getLong(99_999));
  }
}
