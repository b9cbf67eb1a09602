package dev.tutti.cuda.driver;

import java.util.HashMap;
import java.util.Map;

final class FakeContexts implements ContextCalls {
  private static final long BASE = 1L << 48; // above all other handles

  private final FakeCudaDriver fake;
  private final ThreadLocal<Long> current = ThreadLocal.withInitial(() -> 0L);
  private final Map<Integer, Integer> retained = new HashMap<>();

  FakeContexts(FakeCudaDriver fake) {
    this.fake = fake;
  }

  @Override
  public synchronized long retainPrimary(int device) {
    fake.enter("cuDevicePrimaryCtxRetain", String.valueOf(device));
    if (retained.merge(device, 1, Integer::sum) == 1) {
      fake.keep(BASE + device, "context");
    }
    return BASE + device;
  }

  @Override
  public synchronized void releasePrimary(int device) {
    fake.enter("cuDevicePrimaryCtxRelease", String.valueOf(device));
    if (retained.merge(device, -1, Integer::sum) == 0) {
      fake.destroy("cuDevicePrimaryCtxRelease", BASE + device, "context");
    }
  }

  /** Continues without a context, as a virtual thread may after it has blocked. */
  void forget() {
    current.set(0L);
  }

  @Override
  public void setCurrent(long context) {
    current.set(context);
  }

  @Override
  public void synchronize() {
    fake.enter("cuCtxSynchronize", "");
    fake.graphs().spoilAll("cuCtxSynchronize");
    fake.streams().awaitIdle("cuCtxSynchronize", requireDevice("cuCtxSynchronize"));
  }

  @Override
  public void enablePeerAccess(long peer) {
    fake.enter("cuCtxEnablePeerAccess", FakeCudaDriver.hex(peer));
    requireDevice("cuCtxEnablePeerAccess");
  }

  /** Returns the device of the calling thread's context. */
  int requireDevice(String call) {
    long context = current.get();
    if (context == 0 || !fake.isLiving(context)) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.INVALID_CONTEXT);
    }
    return (int) (context - BASE);
  }
}
