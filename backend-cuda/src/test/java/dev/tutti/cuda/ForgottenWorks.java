package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Checks that a group retains nothing of collectives that have ended. */
public final class ForgottenWorks {
  private static final int OPERATIONS = 300;
  private static final int LAST = 1;

  private ForgottenWorks() {}

  /**
   * Runs collectives and waits until only the last one is still referenced; all ranks call this.
   */
  public static void check(ProcessGroup group, CudaDevice device) {
    List<WeakReference<Work>> works = new ArrayList<>();
    for (int i = 0; i < OPERATIONS; i++) {
      works.add(new WeakReference<>(sum(group, device)));
    }
    Until.holds(
        "works that nobody holds",
        () -> {
          System.gc();
          return works.stream().filter(work -> work.get() != null).count() <= LAST;
        });
  }

  private static Work sum(ProcessGroup group, CudaDevice device) {
    Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f));
    Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
    work.await();
    int size = group.size();
    assertThat(device.tensors().toHost(tensor).toFloatArray()).containsExactly(size, 2 * size);
    return work;
  }
}
