package dev.tutti.cuda;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.memory.PinnedBlock;
import java.lang.foreign.ValueLayout;
import java.util.HexFormat;

/**
 * Opens memory and an event of its parent, reads a byte after the event, and sets all bytes to 9.
 */
final class GpuIpcChild {
  private GpuIpcChild() {}

  public static void main(String[] args) {
    CudaDevice device = Cuda.get().device(0);
    device.context().enter();
    CudaDriver driver = device.context().driver();
    long memory = driver.memory().openHandle(HexFormat.of().parseHex(args[0]));
    long event = driver.events().openHandle(HexFormat.of().parseHex(args[1]));
    CudaStream stream = device.poolStream();
    driver.streams().waitFor(stream.handle(), event);
    PinnedBlock pinned = device.pinned().allocate(4096);
    driver.streams().copy(pinned.address(), memory, 4096, stream.handle());
    driver.streams().fill(memory, (byte) 9, 4096, stream.handle());
    stream.await(Until.LONG);
    System.out.println("saw " + pinned.segment().get(ValueLayout.JAVA_BYTE, 4095));
    driver.events().destroy(event);
    driver.memory().closeHandle(memory);
  }
}
