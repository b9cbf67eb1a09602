package dev.tutti.runtime.group;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import dev.tutti.GroupOptions;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import dev.tutti.spi.Time;
import dev.tutti.store.HashStore;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/** A backend whose steps a test defines; by default every step does nothing and succeeds. */
public final class ScriptedProvider implements BackendProvider {
  public interface Collective {
    void run(Operation op, Tensor tensor) throws Exception;
  }

  public interface Message {
    void start(Operation op, Tensor tensor, int peer);
  }

  interface Wait {
    boolean until(Operation op, long deadlineNanos);
  }

  public interface Creation {
    void run(BackendContext context) throws Exception;
  }

  public volatile Creation create = context -> {};
  public volatile Collective allReduce = (op, tensor) -> {};
  volatile Collective broadcast = (op, tensor) -> allReduce.run(op, tensor);
  public volatile Message send = (op, tensor, peer) -> op.complete();
  volatile Message recv = (op, tensor, peer) -> op.complete();
  volatile Wait await = Operation::parkUntilDone;
  volatile Consumer<Throwable> abort = cause -> {};
  volatile Runnable close = () -> {};
  public Feature[] features = {Feature.TAGS};
  boolean movesData = true;
  boolean takesBarriers;
  Set<OpType> missing = Set.of();
  public Time time = Time.SYSTEM;

  /** Joins a job of one rank. */
  public ProcessGroup alone(String... settings) {
    return join(1, settings);
  }

  /** Joins a job as rank 0; no other rank needs to join. */
  public ProcessGroup join(int size, String... settings) {
    return joinAs(0, size, settings);
  }

  /** Joins a job; no other rank needs to join. */
  ProcessGroup joinAs(int rank, int size, String... settings) {
    Map<String, String> environment = new java.util.HashMap<>();
    for (int i = 0; i < settings.length; i += 2) {
      environment.put(settings[i], settings[i + 1]);
    }
    return ProcessGroup.init(
        GroupOptions.DEFAULT
            .withStore(new HashStore())
            .withRank(rank)
            .withSize(size)
            .withProvider(this)
            .withTime(time)
            .withTimeout(Duration.ofMinutes(2))
            .withSettings(Settings.ofEnvironment(environment)));
  }

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "scripted";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    Capabilities all = Capabilities.ofVersion1(features);
    Set<OpType> operations = EnumSet.copyOf(all.operations());
    operations.removeAll(missing);
    return all.toBuilder().operations(operations).build();
  }

  @Override
  public boolean movesData() {
    return movesData;
  }

  @Override
  public Backend create(BackendContext context) throws Exception {
    create.run(context);
    return new ScriptedBackend();
  }

  private final class ScriptedBackend implements Backend {
    private static final Tensor NONE = Tensor.of(0f);

    @Override
    public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
      broadcast.run(op, tensor);
    }

    @Override
    public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) {
      op.completeWith(List.of(tensor));
    }

    @Override
    public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
      allReduce.run(op, tensor);
    }

    @Override
    public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
      allReduce.run(op, tensor);
    }

    @Override
    public boolean takesBarriers() {
      return takesBarriers;
    }

    @Override
    public void barrier(Operation op) throws Exception {
      allReduce.run(op, NONE);
    }

    @Override
    public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
      allReduce.run(op, NONE);
    }

    @Override
    public void allGather(Operation op, List<Tensor> outputs, Tensor input) {}

    @Override
    public void allGatherInto(Operation op, Tensor output, Tensor input) {}

    @Override
    public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs) {}

    @Override
    public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) {}

    @Override
    public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) {}

    @Override
    public void reduceScatter(
        Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp) {}

    @Override
    public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp) {}

    @Override
    public void reduceScatterIntoCoalesced(
        Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) {}

    @Override
    public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) {}

    @Override
    public void allToAllSingle(
        Operation op, Tensor output, Tensor input, long[] outputRows, long[] inputRows) {}

    @Override
    public void send(Operation op, Tensor tensor, int peer, int tag) {
      send.start(op, tensor, peer);
    }

    @Override
    public void recv(Operation op, Tensor tensor, int peer, int tag) {
      recv.start(op, tensor, peer);
    }

    @Override
    public boolean await(Operation op, long deadlineNanos) {
      return await.until(op, deadlineNanos);
    }

    @Override
    public void abort(Throwable cause) {
      abort.accept(cause);
    }

    @Override
    public void close() {
      close.run();
    }
  }
}
