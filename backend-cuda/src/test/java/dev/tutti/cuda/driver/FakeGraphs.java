package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Fake graphs: tasks that run in order. */
final class FakeGraphs implements GraphCalls {
  private final FakeCudaDriver fake;
  private final Map<Long, List<FakeStream.Task>> tasks = new ConcurrentHashMap<>();
  private final ThreadLocal<Integer> modes = ThreadLocal.withInitial(() -> GLOBAL);

  FakeGraphs(FakeCudaDriver fake) {
    this.fake = fake;
  }

  @Override
  public void beginCapture(long stream, int mode) {
    fake.enter("cuStreamBeginCapture", hex(stream));
    if (stream == StreamCalls.DEFAULT) {
      throw FakeCudaDriver.error("cuStreamBeginCapture", 900);
    }
    fake.streams().require("cuStreamBeginCapture", stream).beginCapture(mode);
  }

  @Override
  public long endCapture(long stream) {
    fake.enter("cuStreamEndCapture", hex(stream));
    List<FakeStream.Task> recorded =
        fake.streams().require("cuStreamEndCapture", stream).endCapture();
    if (recorded == null) {
      throw FakeCudaDriver.error("cuStreamEndCapture", FakeCudaDriver.CAPTURE_INVALIDATED);
    }
    long graph = fake.make("graph");
    tasks.put(graph, recorded);
    return graph;
  }

  @Override
  public int exchangeMode(int mode) {
    int before = modes.get();
    modes.set(mode);
    return before;
  }

  /** Invalidates the captures that do not permit a call, and rejects the call. */
  void requireSafe(String call) {
    int mode = modes.get();
    if (mode == RELAXED) {
      return;
    }
    boolean refused = false;
    for (FakeStream.Capture capture : fake.streams().captures()) {
      boolean isOwn = capture.recorder.equals(Thread.currentThread()) && capture.mode != RELAXED;
      if (isOwn || (mode == GLOBAL && capture.mode == GLOBAL)) {
        capture.spoil();
        refused = true;
      }
    }
    if (refused) {
      throw FakeCudaDriver.error(call, FakeCudaDriver.CAPTURE_UNSUPPORTED);
    }
  }

  /** Invalidates all captures, whatever their mode, and rejects the call that waits for them. */
  void spoilAll(String call) {
    List<FakeStream.Capture> captures = fake.streams().captures();
    if (!captures.isEmpty()) {
      captures.forEach(FakeStream.Capture::spoil);
      throw FakeCudaDriver.error(call, FakeCudaDriver.CAPTURE_UNSUPPORTED);
    }
  }

  @Override
  public long instantiate(long graph) {
    fake.enter("cuGraphInstantiate", hex(graph));
    long executable = fake.make("executable graph");
    tasks.put(executable, tasks.get(graph));
    return executable;
  }

  @Override
  public void launch(long executable, long stream) {
    fake.enter("cuGraphLaunch", hex(executable) + " " + hex(stream));
    FakeStream queue = fake.streams().require("cuGraphLaunch", stream);
    tasks.get(executable).forEach(queue::enqueue);
  }

  @Override
  public void destroy(long graph) {
    fake.enter("cuGraphDestroy", hex(graph));
    fake.destroy("cuGraphDestroy", graph, "graph");
    tasks.remove(graph);
  }

  @Override
  public void destroyExecutable(long executable) {
    fake.enter("cuGraphExecDestroy", hex(executable));
    fake.destroy("cuGraphExecDestroy", executable, "executable graph");
    tasks.remove(executable);
  }
}
