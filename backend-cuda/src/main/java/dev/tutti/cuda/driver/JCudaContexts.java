package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.invoke.MethodHandle;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;

/** Context calls that retain contexts through JCuda, and make them current directly. */
final class JCudaContexts implements ContextCalls {
  private static final MethodHandle SET_CURRENT = LibCuda.function("cuCtxSetCurrent", JAVA_LONG);

  private final Map<Long, Context> contexts = new ConcurrentHashMap<>();

  @Override
  public long retainPrimary(int device) {
    CUdevice handle = JCudaDevices.get(device);
    Context context = new Context();
    Errors.call(
        "cuDevicePrimaryCtxRetain of device " + device,
        () -> JCudaDriver.cuDevicePrimaryCtxRetain(context, handle));
    contexts.put(context.number(), context);
    return context.number();
  }

  @Override
  public void releasePrimary(int device) {
    CUdevice handle = JCudaDevices.get(device);
    Errors.call(
        "cuDevicePrimaryCtxRelease of device " + device,
        () -> JCudaDriver.cuDevicePrimaryCtxRelease(handle));
  }

  @Override
  public void setCurrent(long context) {
    try {
      Errors.check((int) SET_CURRENT.invokeExact(context), "cuCtxSetCurrent");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void synchronize() {
    Errors.call("cuCtxSynchronize", JCudaDriver::cuCtxSynchronize);
  }

  @Override
  public void enablePeerAccess(long peer) {
    Context context = contexts.get(peer);
    if (context == null) {
      throw new IllegalArgumentException("no such context: " + peer);
    }
    Errors.call(
        "cuCtxEnablePeerAccess",
        () -> {
          int code = JCudaDriver.cuCtxEnablePeerAccess(context, 0);
          return code == CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? 0 : code;
        });
  }

  private static final class Context extends CUcontext {
    long number() {
      return getNativePointer();
    }
  }
}
