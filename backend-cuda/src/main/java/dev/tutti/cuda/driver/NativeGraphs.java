package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.invoke.MethodHandle;

/** Graph calls that are made directly, because JCuda accepts only streams that it created. */
final class NativeGraphs implements GraphCalls {
  private static final MethodHandle BEGIN_CAPTURE =
      LibCuda.function("cuStreamBeginCapture_v2", JAVA_LONG, JAVA_INT);
  private static final MethodHandle END_CAPTURE =
      LibCuda.function("cuStreamEndCapture", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle EXCHANGE_MODE =
      LibCuda.function("cuThreadExchangeStreamCaptureMode", JAVA_LONG);
  private static final MethodHandle INSTANTIATE =
      LibCuda.function("cuGraphInstantiateWithFlags", JAVA_LONG, JAVA_LONG, JAVA_LONG);
  private static final MethodHandle LAUNCH =
      LibCuda.function("cuGraphLaunch", JAVA_LONG, JAVA_LONG);
  private static final MethodHandle DESTROY = LibCuda.function("cuGraphDestroy", JAVA_LONG);
  private static final MethodHandle DESTROY_EXECUTABLE =
      LibCuda.function("cuGraphExecDestroy", JAVA_LONG);

  @Override
  public void beginCapture(long stream, int mode) {
    Errors.call("cuStreamBeginCapture", () -> (int) BEGIN_CAPTURE.invokeExact(stream, mode));
  }

  @Override
  public int exchangeMode(int mode) {
    OutCell cell = OutCell.zeroed();
    cell.setInt(mode);
    try {
      Errors.check(
          (int) EXCHANGE_MODE.invokeExact(cell.address()), "cuThreadExchangeStreamCaptureMode");
      return cell.getInt();
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public long endCapture(long stream) {
    return OutCell.read(
        "cuStreamEndCapture", result -> (int) END_CAPTURE.invokeExact(stream, result));
  }

  @Override
  public long instantiate(long graph) {
    return OutCell.read(
        "cuGraphInstantiate", result -> (int) INSTANTIATE.invokeExact(result, graph, 0L));
  }

  @Override
  public void launch(long executable, long stream) {
    try {
      Errors.check((int) LAUNCH.invokeExact(executable, stream), "cuGraphLaunch");
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  @Override
  public void destroy(long graph) {
    Errors.call("cuGraphDestroy", () -> (int) DESTROY.invokeExact(graph));
  }

  @Override
  public void destroyExecutable(long executable) {
    Errors.call("cuGraphExecDestroy", () -> (int) DESTROY_EXECUTABLE.invokeExact(executable));
  }
}
