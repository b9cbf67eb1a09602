package dev.tutti.cuda.driver;

import static dev.tutti.cuda.driver.FakeCudaDriver.hex;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Fake graphs: tasks that run in order. */
final class FakeGraphs implements GraphCalls {
  private final FakeCudaDriver fake;
  private final Map<Long, Graph> graphs = new ConcurrentHashMap<>();
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
    FakeStream origin = fake.streams().require("cuStreamEndCapture", stream);
    FakeCapture capture = origin.capture();
    if (capture == null) {
      throw FakeCudaDriver.error("cuStreamEndCapture", FakeCudaDriver.INVALID_VALUE);
    }
    if (capture.origin != origin) {
      capture.spoil();
      throw FakeCudaDriver.error("cuStreamEndCapture", FakeCudaDriver.CAPTURE_UNMATCHED);
    }
    List<FakeCapture.Step> recorded = capture.end();
    if (recorded == null) {
      throw FakeCudaDriver.error("cuStreamEndCapture", FakeCudaDriver.CAPTURE_INVALIDATED);
    }
    if (!FakeCapture.isJoined(recorded, origin)) {
      throw FakeCudaDriver.error("cuStreamEndCapture", FakeCudaDriver.CAPTURE_UNJOINED);
    }
    long graph = fake.make("graph");
    graphs.put(graph, new Graph(origin, recorded));
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
    for (FakeCapture capture : fake.streams().captures()) {
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
    List<FakeCapture> captures = fake.streams().captures();
    if (!captures.isEmpty()) {
      captures.forEach(FakeCapture::spoil);
      throw FakeCudaDriver.error(call, FakeCudaDriver.CAPTURE_UNSUPPORTED);
    }
  }

  @Override
  public long instantiate(long graph) {
    fake.enter("cuGraphInstantiate", hex(graph));
    long executable = fake.make("executable graph");
    Graph recorded = graphs.get(graph);
    graphs.put(executable, new Graph(recorded.origin, recorded.steps));
    return executable;
  }

  @Override
  public void launch(long executable, long stream) {
    fake.enter("cuGraphLaunch", hex(executable) + " " + hex(stream));
    FakeStream queue = fake.streams().require("cuGraphLaunch", stream);
    graphs.get(executable).launch(queue);
  }

  @Override
  public void destroy(long graph) {
    fake.enter("cuGraphDestroy", hex(graph));
    fake.destroy("cuGraphDestroy", graph, "graph");
    graphs.remove(graph);
  }

  @Override
  public void destroyExecutable(long executable) {
    fake.enter("cuGraphExecDestroy", hex(executable));
    fake.destroy("cuGraphExecDestroy", executable, "executable graph");
    graphs.remove(executable);
  }

  void close() {
    graphs.values().forEach(Graph::close);
  }

  /** The steps of a graph. Those of the first stream run in that of the launch. */
  private final class Graph {
    private final FakeStream origin;
    private final List<FakeCapture.Step> steps;
    private final Map<FakeStream, FakeStream> others = new HashMap<>();

    Graph(FakeStream origin, List<FakeCapture.Step> steps) {
      this.origin = origin;
      this.steps = steps;
    }

    synchronized void launch(FakeStream queue) {
      IdentityHashMap<FakePoint, FakePoint> points = new IdentityHashMap<>();
      for (FakeCapture.Step step : steps) {
        FakeStream to =
            step.stream() == origin
                ? queue
                : others.computeIfAbsent(step.stream(), own -> fake.newStream(own.device));
        switch (step.task()) {
          case FakeStream.Mark mark ->
              to.mark(points.computeIfAbsent(mark.point(), _ -> new FakePoint()));
          case FakeStream.Wait wait ->
              to.await(points.computeIfAbsent(wait.point(), _ -> new FakePoint()), wait.isKnown());
          default -> to.enqueue(step.task());
        }
      }
    }

    synchronized void close() {
      others.values().forEach(FakeStream::close);
    }
  }
}
