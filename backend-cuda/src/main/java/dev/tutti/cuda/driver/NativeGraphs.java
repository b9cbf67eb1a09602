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
  private static final MethodHandle DESTROY = LibCuda.function("cuGraphDestroy", JAVA_LONG);
  private static final MethodHandle DESTROY_EXECUTABLE =
      LibCuda.function("cuGraphExecDestroy", JAVA_LONG);

  @Override
  public void beginCapture(long stream, int mode) {
    int code;
    try {
      code = (int) BEGIN_CAPTURE.invokeExact(stream, mode);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuStreamBeginCapture");
  }

  @Override
  public int exchangeMode(int mode) {
    OutCell cell = OutCell.zeroed();
    cell.setInt(mode);
    int code;
    try {
      code = (int) EXCHANGE_MODE.invokeExact(cell.address());
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuThreadExchangeStreamCaptureMode");
    return cell.getInt();
  }

  @Override
  public long endCapture(long stream) {
    OutCell out = OutCell.zeroed();
    int code;
    try {
      code = (int) END_CAPTURE.invokeExact(stream, out.address());
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuStreamEndCapture");
    return out.getLong();
  }

  @Override
  public long instantiate(long graph) {
    OutCell out = OutCell.zeroed();
    int code;
    try {
      code = (int) INSTANTIATE.invokeExact(out.address(), graph, 0L);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuGraphInstantiate");
    return out.getLong();
  }

  @Override
  public void launch(long executable, long stream) {
    Errors.check(LibCuda.graphLaunch(executable, stream), "cuGraphLaunch");
  }

  @Override
  public void destroy(long graph) {
    int code;
    try {
      code = (int) DESTROY.invokeExact(graph);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuGraphDestroy");
  }

  @Override
  public void destroyExecutable(long executable) {
    int code;
    try {
      code = (int) DESTROY_EXECUTABLE.invokeExact(executable);
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
    Errors.check(code, "cuGraphExecDestroy");
  }
}
