package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.tutti.CollectiveException;
import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cpu.NanScan;
import dev.tutti.cuda.element.DeviceCopy;
import dev.tutti.cuda.element.DeviceNanSearch;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Compares copies, conversions and searches for NaN on a device with those of the host. */
public final class ElementCases {
  private static final List<DType> TYPES =
      List.of(DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16);
  private static final int GUARD = 5;

  private final CudaDevice device;

  public ElementCases(CudaDevice device) {
    this.device = device;
  }

  /** Fills a tensor with finite numbers of all magnitudes, some of them halfway between halves. */
  private static Tensor numbers(DType type, long seed, long... shape) {
    Random random = new Random(seed);
    Tensor tensor = Tensor.allocate(type, shape);
    for (long i = 0; i < tensor.numel(); i++) {
      double value = random.nextGaussian() * Math.scalb(1.0, random.nextInt(40) - 24);
      tensor.setDouble(i, i % 3 == 0 ? 1 + random.nextInt(64) * 0x1p-11 : value);
    }
    return tensor;
  }

  /** Returns a view of part of a larger tensor, which is not aligned for vectors. */
  private static Tensor part(Tensor whole, long skip, long numel) {
    return whole.narrow(0, skip, numel);
  }

  /**
   * Converts between all pairs of types, with each alignment, and leaves adjacent elements as they
   * are.
   */
  public void conversions(int most) {
    for (DType from : TYPES) {
      for (DType to : TYPES) {
        for (int numel : new int[] {0, 1, 3, 4, 257, most}) {
          for (int skip : numel == most ? new int[] {0, 1} : new int[] {0, 1, 2, 3}) {
            conversion(from, to, numel, skip);
          }
        }
      }
    }
  }

  private void conversion(DType from, DType to, int numel, int skip) {
    Tensor source = numbers(from, numel, numel);
    Tensor before = numbers(to, 7, numel + GUARD);
    Tensor expected = before.copy();
    for (int i = 0; i < numel; i++) {
      expected.setDouble(skip + i, source.getDouble(i));
    }
    Tensor room = device.tensors().allocate(from, numel + GUARD);
    Tensor onDevice = part(room, skip, numel);
    device.tensors().copyFromHost(onDevice, source);
    Tensor target = device.tensors().copyOf(before);
    DeviceCopy.copy(device, part(target, skip, numel), onDevice);
    assertThat(device.tensors().toHost(target).segment().mismatch(expected.segment()))
        .as("first other byte of %d %s as %s, from %d", numel, from, to, skip)
        .isEqualTo(-1);
  }

  /** Copies and converts tensors with gaps. */
  public void strides() {
    for (DType to : List.of(DType.FLOAT32, DType.FLOAT16)) {
      Tensor source = numbers(DType.FLOAT32, 1, 30, 40);
      Tensor expected = Tensor.allocate(to, 40, 30);
      for (long i = 0; i < 40; i++) {
        for (long j = 0; j < 30; j++) {
          expected.setDouble(i * 30 + j, source.getDouble(j * 40 + i));
        }
      }
      Tensor turned = device.tensors().copyOf(source).transpose(0, 1);
      Tensor dense = device.tensors().allocate(to, 40, 30);
      DeviceCopy.copy(device, dense, turned);
      assertThat(device.tensors().toHost(dense).segment().mismatch(expected.segment()))
          .isEqualTo(-1);
      Tensor turnedBack = device.tensors().allocate(DType.FLOAT32, 30, 40);
      DeviceCopy.copy(device, turnedBack.transpose(0, 1), dense);
      Tensor found = device.tensors().toHost(turnedBack);
      for (long i = 0; i < found.numel(); i++) {
        double rounded = expected.getDouble(i % 40 * 30 + i / 40);
        assertThat(found.getDouble(i)).isEqualTo(rounded);
      }
    }
  }

  /**
   * Copies between a part of a bucket, which is aligned to an element alone, and a tensor with
   * gaps.
   */
  public void oddAddresses() {
    Tensor source = numbers(DType.FLOAT32, 5, 17);
    Tensor bucket = device.tensors().copyOf(source);
    Tensor rows = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, 4, 8));
    Tensor gaps = rows.narrow(1, 0, 4);
    DeviceCopy.copy(device, gaps, bucket.narrow(0, 1, 16).view(4, 4));
    Tensor found = device.tensors().toHost(rows);
    for (long i = 0; i < 32; i++) {
      boolean isCopied = i % 8 < 4;
      assertThat(found.getDouble(i))
          .isEqualTo(isCopied ? source.getDouble(1 + i / 8 * 4 + i % 8) : 0);
    }
    Tensor back = device.tensors().copyOf(Tensor.allocate(DType.FLOAT32, 17));
    DeviceCopy.copy(device, back.narrow(0, 1, 16).view(4, 4), gaps);
    assertThat(device.tensors().toHost(back).narrow(0, 1, 16).toDoubleArray())
        .isEqualTo(source.narrow(0, 1, 16).toDoubleArray());
  }

  /** Returns a copy of a host tensor at an odd address. */
  public static Tensor atOddAddress(CudaDevice device, Tensor host) {
    Tensor room = device.tensors().allocate(DType.UINT8, host.byteSize() + 1);
    Tensor odd =
        Tensor.wrap(
            room.segment().asSlice(1), host.dtype(), host.shape(), host.strides(), device.device());
    device.tensors().copyFromHost(odd, host);
    return odd;
  }

  /** Searches and converts numbers at addresses that are no multiples of their size. */
  public void unalignedNumbers() {
    Tensor floats = atOddAddress(device, Tensor.of(1f, 2, Float.NaN, 4));
    assertThat(firstNan(floats)).isEqualTo(2);
    Tensor doubles = atOddAddress(device, Tensor.of(5., 6, 7, 8));
    DeviceCopy.copy(device, floats, doubles);
    assertThat(device.tensors().toHost(floats).toFloatArray()).containsExactly(5, 6, 7, 8);
    Tensor halves = device.tensors().copyOf(Tensor.of(DType.FLOAT16, 1, 2, 3, 4));
    DeviceCopy.copy(device, doubles, halves);
    assertThat(device.tensors().toHost(doubles).toDoubleArray()).containsExactly(1, 2, 3, 4);
    DeviceCopy.copy(device, halves, floats);
    assertThat(device.tensors().toHost(halves).toDoubleArray()).containsExactly(5, 6, 7, 8);
  }

  /** Refuses what cannot be converted. */
  public void refusals() {
    Tensor floats = device.tensors().allocate(DType.FLOAT32, 4);
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> DeviceCopy.copy(device, device.tensors().allocate(DType.INT32, 4), floats))
        .withMessageContaining("cannot copy float32[4]");
    assertThatIllegalArgumentException()
        .isThrownBy(
            () -> DeviceCopy.copy(device, device.tensors().allocate(DType.FLOAT32, 5), floats));
  }

  private long firstNan(Tensor tensor) {
    try {
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      return DeviceNanSearch.firstNan(device, tensor, deadline, () -> {});
    } catch (TimeoutException e) {
      throw new AssertionError(e);
    }
  }

  /** Finds each first NaN, at each position and alignment, in each type. */
  public void nans(int most) {
    Random random = new Random(3);
    for (DType type : DType.values()) {
      for (int numel : new int[] {1, 2, 17, 300, most}) {
        for (int turn = 0; turn < 12; turn++) {
          Tensor host = Tensor.allocate(type, numel + GUARD);
          byte[] bytes = new byte[(int) host.byteSize()];
          if (turn % 3 == 0) {
            random.nextBytes(bytes); // of 8 bits, mostly with NaN
          } else if (turn % 3 == 1) {
            Arrays.fill(bytes, (byte) 1);
            int at = random.nextInt(numel) * type.byteSize();
            Arrays.fill(bytes, at, at + type.byteSize(), (byte) -1);
          }
          host.segment().asByteBuffer().put(bytes);
          int skip = turn % 4;
          Tensor onDevice = device.tensors().copyOf(host);
          assertThat(firstNan(part(onDevice, skip, numel)))
              .as("first NaN of %d %s from %d, turn %d", numel, type, skip, turn)
              .isEqualTo(NanScan.firstNan(part(host, skip, numel)));
        }
      }
    }
  }

  /** Counts in row-major order also where there are gaps, and once for each complex element. */
  public void nansByIndex() {
    Tensor host = Tensor.allocate(DType.COMPLEX64, 6, 7);
    host.segment().setAtIndex(ValueLayout.JAVA_FLOAT, 2 * 33 + 1, Float.NaN);
    Tensor onDevice = device.tensors().copyOf(host);
    assertThat(firstNan(onDevice)).isEqualTo(33);
    // Row 4, column 5 of 6 times 7 is row 5, column 4 of 7 times 6.
    assertThat(firstNan(onDevice.transpose(0, 1))).isEqualTo(34);
    assertThat(firstNan(device.tensors().allocate(DType.FLOAT32, 0))).isEqualTo(-1);
  }

  /** Fails an operation of two ranks that check for NaN on the second. */
  public static void theRankWithTheNanIsNamed(CudaRanks ranks) throws Exception {
    ranks
        .with("TUTTI_NAN_CHECK", "1")
        .run(
            2,
            (group, device) -> {
              Tensor tensor = device.tensors().copyOf(Tensor.of(1f, 2f, 3f, 4f));
              group.allReduce(tensor);
              assertThat(device.tensors().toHost(tensor).toFloatArray())
                  .containsExactly(2, 4, 6, 8);
              // A failure ends what another rank still waits for.
              group.store().barrier("whole", 2, Until.LONG);
              float last = group.rank() == 1 ? Float.NaN : 1;
              device.tensors().copyFromHost(tensor, Tensor.of(1f, 2f, 3f, last));
              // A rank without NaN may return before it is notified of the failure.
              assertThatCode(() -> group.allReduce(tensor))
                  .satisfiesAnyOf(
                      failure -> assertThat(failure).isNull(),
                      failure -> assertThat(failure).isInstanceOf(CollectiveException.class));
              Until.holds("the failure", () -> group.failure().isPresent());
              assertThat(group.failure().orElseThrow().toString())
                  .contains("the input of rank 1 has a NaN at index 3");
            });
  }
}
