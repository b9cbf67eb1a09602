package dev.tutti.runtime.group;

import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.BackendProvider;
import dev.tutti.spi.Operation;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A backend for tests of the runtime, with barrier, all-reduce and messages between threads. */
public class LocalProvider implements BackendProvider {
  private final Map<String, World> worlds = new ConcurrentHashMap<>();

  @Override
  public int spiVersion() {
    return SPI_VERSION;
  }

  @Override
  public String name() {
    return "local";
  }

  @Override
  public Set<String> deviceTypes() {
    return Set.of("cpu");
  }

  @Override
  public Capabilities capabilities(String deviceType) {
    return Capabilities.builder()
        .operations(EnumSet.of(OpType.ALL_REDUCE, OpType.BARRIER, OpType.SEND, OpType.RECV))
        .movable(EnumSet.allOf(DType.class))
        .reducible(EnumSet.of(DType.FLOAT32))
        .reduceOps(EnumSet.of(ReduceOp.Kind.SUM))
        .features(EnumSet.of(Capabilities.Feature.TAGS))
        .build();
  }

  @Override
  public Backend create(BackendContext context) {
    return new LocalBackend(
        context, worlds.computeIfAbsent(context.group(), name -> new World(context.size())));
  }

  private static final class World {
    final int size;
    final Map<String, Integer> arrived = new HashMap<>();
    final Map<String, Tensor> sums = new HashMap<>();
    final Map<String, Operation> sends = new HashMap<>();
    final Map<String, Tensor> sent = new HashMap<>();

    World(int size) {
      this.size = size;
    }
  }

  private static final class LocalBackend implements Backend {
    private final BackendContext context;
    private final World world;
    private int collectives;
    private volatile Throwable aborted;

    LocalBackend(BackendContext context, World world) {
      this.context = context;
      this.world = world;
    }

    @Override
    public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
      String key = "c" + ++collectives;
      synchronized (world) {
        Tensor sum =
            world.sums.computeIfAbsent(key, k -> Tensor.allocate(tensor.dtype(), tensor.numel()));
        HostReducer.reduce(
            reduceOp.kind(), tensor.dtype(), sum.segment(), 0, tensor.segment(), 0, tensor.numel());
        meet(op, key);
        tensor.copyFrom(sum);
      }
    }

    @Override
    public void barrier(Operation op) throws Exception {
      meet(op, "c" + ++collectives);
    }

    private void meet(Operation op, String key) throws Exception {
      synchronized (world) {
        world.arrived.merge(key, 1, Integer::sum);
        world.notifyAll();
        while (world.arrived.get(key) < world.size) {
          long left = op.deadlineNanos() - System.nanoTime();
          if (aborted != null) {
            throw new IllegalStateException("aborted", aborted);
          }
          if (left <= 0) {
            throw new TimeoutException("not all ranks came");
          }
          TimeUnit.NANOSECONDS.timedWait(world, Math.max(left, 1000));
        }
      }
    }

    @Override
    public void send(Operation op, Tensor tensor, int peer, int tag) {
      synchronized (world) {
        String key = context.rank() + ">" + peer + "#" + tag;
        world.sends.put(key, op);
        world.sent.put(key, tensor);
        match(key);
      }
    }

    @Override
    public void recv(Operation op, Tensor tensor, int peer, int tag) {
      synchronized (world) {
        String key = peer + ">" + context.rank() + "#" + tag;
        world.sends.put("r" + key, op);
        world.sent.put("r" + key, tensor);
        match(key);
      }
    }

    private void match(String key) {
      if (world.sends.containsKey(key) && world.sends.containsKey("r" + key)) {
        world.sent.remove("r" + key).copyFrom(world.sent.remove(key));
        world.sends.remove(key).complete();
        world.sends.remove("r" + key).complete();
      }
    }

    @Override
    public void abort(Throwable cause) {
      aborted = cause;
      synchronized (world) {
        world.notifyAll();
      }
    }

    @Override
    public void close() {}
  }
}
