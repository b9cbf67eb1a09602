package dev.tutti.fake;

import dev.tutti.OpType;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import java.util.ArrayList;
import java.util.List;

/**
 * Records the calls that reach a backend, for assertions. Any thread may call any method.
 *
 * <p>The calls of one rank are in program order; across ranks they are in the order of time. Calls
 * that the group rejected are not recorded.
 */
public final class CallRecorder {
  private final List<RecordedCall> calls = new ArrayList<>();

  /** Creates an empty recorder. */
  public CallRecorder() {}

  /**
   * Returns a provider of the same name whose backends are recorded here.
   *
   * @param provider creates the backends
   */
  public BackendProvider wrap(BackendProvider provider) {
    return new RecordingProvider(provider);
  }

  /** Returns the calls so far. */
  public synchronized List<RecordedCall> calls() {
    return List.copyOf(calls);
  }

  /**
   * Returns the calls of one rank.
   *
   * @param rank the rank in its group
   */
  public List<RecordedCall> calls(int rank) {
    return calls().stream().filter(call -> call.rank() == rank).toList();
  }

  /**
   * Returns the calls of one operation.
   *
   * @param opType the operation
   */
  public List<RecordedCall> calls(OpType opType) {
    return calls().stream().filter(call -> call.opType() == opType).toList();
  }

  /** Discards all calls. */
  public synchronized void clear() {
    calls.clear();
  }

  private synchronized void add(RecordedCall call) {
    calls.add(call);
  }

  private final class RecordingProvider extends DecoratedProvider {
    RecordingProvider(BackendProvider inner) {
      super(inner);
    }

    @Override
    public Backend create(BackendContext context) throws Exception {
      return new RecordingBackend(inner.create(context), context);
    }
  }

  private final class RecordingBackend extends DecoratedBackend {
    private final BackendContext context;

    RecordingBackend(Backend inner, BackendContext context) {
      super(inner);
      this.context = context;
    }

    @Override
    public void run(Operation op) throws Exception {
      add(RecordedCallData.of(context.group(), context.rank(), op));
      inner.run(op);
    }

    @Override
    DecoratedBackend around(Backend subgroup, BackendContext context) {
      return new RecordingBackend(subgroup, context);
    }
  }
}
