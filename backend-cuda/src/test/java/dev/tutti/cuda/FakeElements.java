package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.driver.FakeCudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Fakes of the kernels that convert elements and search them for NaN. */
final class FakeElements {
  private static final List<DType> TYPES =
      List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16);

  private final FakeCudaDriver fake;

  FakeElements(FakeCudaDriver fake) {
    this.fake = fake;
  }

  private static long number(MemorySegment[] arguments, int index) {
    return arguments[index].get(ValueLayout.JAVA_LONG, 0);
  }

  private MemorySegment at(long address, long bytes) {
    assertThat(fake.memory().isUsable(address, bytes)).as("memory is allocated").isTrue();
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  /** Returns a view of an array that the device may access. */
  private MemorySegment array(long address, long count, int unit) {
    assertThat(address % unit).as("alignment of an array").isZero();
    return at(address, count * unit);
  }

  private Tensor tensor(long address, long count, MemorySegment code) {
    DType type = TYPES.get(code.get(ValueLayout.JAVA_INT, 0));
    return Tensor.wrap(array(address, count, type.byteSize()), type, count);
  }

  void convert(MemorySegment[] a) {
    long count = number(a, 2);
    Tensor source = tensor(number(a, 0), count, a[3]);
    Tensor target = tensor(number(a, 1), count, a[4]);
    fake.races().read("a conversion", number(a, 0), source.byteSize());
    fake.races().write("a conversion", number(a, 1), target.byteSize());
    for (long i = 0; i < count; i++) {
      target.setDouble(i, source.getDouble(i));
    }
  }

  void firstNan(MemorySegment[] a) {
    long count = number(a, 1);
    int unit = a[2].get(ValueLayout.JAVA_INT, 0);
    MemorySegment data = array(number(a, 0), count, unit);
    MemorySegment first = at(number(a, 6), Long.BYTES);
    for (long i = 0; i < count; i++) {
      long bits =
          switch (unit) {
            case 1 -> data.get(ValueLayout.JAVA_BYTE, i);
            case 2 -> data.get(ValueLayout.JAVA_SHORT_UNALIGNED, 2 * i);
            case 4 -> data.get(ValueLayout.JAVA_INT_UNALIGNED, 4 * i);
            default -> data.get(ValueLayout.JAVA_LONG_UNALIGNED, 8 * i);
          };
      long masked = (bits ^ number(a, 3)) & number(a, 4);
      if (Long.compareUnsigned(masked, number(a, 5)) > 0) {
        assertThat(first.get(ValueLayout.JAVA_LONG, 0)).as("the word before").isEqualTo(-1);
        first.set(ValueLayout.JAVA_LONG, 0, i);
        return;
      }
    }
  }
}
