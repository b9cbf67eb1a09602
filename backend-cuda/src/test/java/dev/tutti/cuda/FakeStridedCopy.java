package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.FakeStructKernel;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** A fake of the kernel that copies between strided and contiguous tensors; checks its launch. */
public final class FakeStridedCopy implements FakeStructKernel {
  private final FakeCudaDriver fake;

  public FakeStridedCopy(FakeCudaDriver fake) {
    this.fake = fake;
  }

  @Override
  public void run(String launch, MemorySegment[] arguments) {
    long[] a = new long[arguments.length];
    for (int i = 0; i < a.length; i++) {
      a[i] = arguments[i].get(ValueLayout.JAVA_LONG, 0);
    }
    long unit = (int) a[3];
    boolean isToDense = (int) a[4] != 0;
    assertThat(unit).as("bytes of a unit").isIn(1L, 2L, 4L, 8L, 16L);
    assertThat(a[1] % unit).as("alignment of dense memory").isZero();
    long least = Long.MAX_VALUE;
    long most = Long.MIN_VALUE;
    for (long i = 0; i < a[2]; i++) {
      long rest = i;
      long gaps = a[0];
      for (int d = 0; d < 3; d++) {
        gaps += rest % a[5 + d] * a[8 + d];
        rest /= a[5 + d];
      }
      gaps += rest * a[11];
      assertThat(gaps % unit).as("alignment of a unit of the tensor").isZero();
      least = Math.min(least, gaps);
      most = Math.max(most, gaps + unit);
      MemorySegment strided = at(gaps, unit);
      MemorySegment dense = at(a[1] + i * unit, unit);
      (isToDense ? dense : strided).copyFrom(isToDense ? strided : dense);
    }
    if (a[2] > 0) {
      long from = isToDense ? least : a[1];
      long to = isToDense ? a[1] : least;
      fake.races().read("a strided copy", from, isToDense ? most - least : a[2] * unit);
      fake.races().write("a strided copy", to, isToDense ? a[2] * unit : most - least);
    }
  }

  /** Returns a view of memory that the device may access. */
  private MemorySegment at(long address, long bytes) {
    assertThat(fake.memory().isUsable(address, bytes)).as("memory is allocated").isTrue();
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }
}
