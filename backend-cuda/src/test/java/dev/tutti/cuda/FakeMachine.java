package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.StreamBlockStatus;
import dev.tutti.cuda.block.BlockState;
import dev.tutti.cuda.block.CudaStreamBlock;
import dev.tutti.cuda.driver.FakeCudaDriver;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A {@link Cuda} on a fake driver with two kernels: that of stream blocks, and one that holds a
 * stream.
 */
public final class FakeMachine implements AutoCloseable {
  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

  public final FakeCudaDriver fake;
  final FakeCollectives collectives;
  public final Cuda cuda;
  private final AtomicInteger holds = new AtomicInteger();

  public FakeMachine(int devices) {
    fake = new FakeCudaDriver(devices);
    fake.kernel(CudaStreamBlock.KERNEL, 2, this::streamBlock);
    collectives = FakeCollectives.install(fake);
    cuda = new Cuda(fake.driver(), fake.links(), () -> new byte[] {1, 2, 3});
  }

  /** Does what the kernel does. */
  private void streamBlock(long[] arguments) throws InterruptedException {
    MemorySegment words = MemorySegment.ofAddress(arguments[0]).reinterpret(BlockState.BYTES);
    long start = System.nanoTime();
    write(words, StreamBlockStatus.RUNNING);
    while (true) {
      if (!fake.memory().isUsable(arguments[0], BlockState.BYTES)) {
        throw new AssertionError("the words of a running stream block were freed");
      }
      if ((int) WORD.getAcquire(words, 0L) == 1) {
        write(words, StreamBlockStatus.ABORTED);
        return;
      }
      if (arguments[1] > 0 && System.nanoTime() - start > arguments[1] * 1_000_000) {
        write(words, StreamBlockStatus.TIMED_OUT);
        return;
      }
      Thread.sleep(1);
    }
  }

  private static void write(MemorySegment words, StreamBlockStatus status) {
    WORD.setRelease(words, 4L, status.code());
  }

  /** Returns how many parts of collectives went directly between symmetric memories. */
  public long directParts() {
    return collectives.directParts.get();
  }

  /** Holds a stream until the latch is opened. */
  public CountDownLatch hold(CudaStream stream) {
    return hold(stream.device(), stream.handle());
  }

  /** Holds a stream of a device, by its handle, until the latch is opened. */
  public CountDownLatch hold(CudaDevice device, long stream) {
    CountDownLatch latch = new CountDownLatch(1);
    // A name of its own, since ranks may hold their streams at the same time.
    String name = "hold" + holds.incrementAndGet();
    fake.kernel(name, 0, _ -> latch.await());
    device.context().enter();
    long module = fake.driver().kernels().load(new byte[1]);
    long function = fake.driver().kernels().function(module, name);
    fake.driver().kernels().launch(function, 1, 1, stream, 1);
    fake.driver().kernels().unload(module);
    return latch;
  }

  /** Closes the driver, as happens when a process exits. */
  public void closeDriver() {
    cuda.close();
  }

  /** Closes everything and checks that nothing is left. */
  @Override
  public void close() {
    // NCCL's communicators may end on threads for which the close of a group waits for a second.
    Until.holds("the end of all communicators", () -> fake.living("communicator") == 0);
    cuda.close();
    assertThat(fake.living()).as("what was made and not destroyed").isEmpty();
    fake.close();
  }
}
