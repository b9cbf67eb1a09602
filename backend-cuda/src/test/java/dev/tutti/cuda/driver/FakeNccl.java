package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclResult;
import dev.tutti.spi.HostReducer;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Plays NCCL on the streams of a played driver. Calls are in progress for a while, as those of
 * communicators that do not block are. Checks that ranks make the same calls.
 */
public final class FakeNccl implements NcclCalls {
  private static final ThreadLocal<@Nullable List<Step>> GROUP = new ThreadLocal<>();
  private static final int FIRST_FACTOR = 16;
  private static final List<ReduceOp.Kind> OPS =
      List.of(
          ReduceOp.Kind.SUM,
          ReduceOp.Kind.PRODUCT,
          ReduceOp.Kind.MAX,
          ReduceOp.Kind.MIN,
          ReduceOp.Kind.AVG);

  private final FakeCudaDriver fake;
  private final Map<Long, World> worlds = new ConcurrentHashMap<>();
  private final Map<Long, Comm> comms = new ConcurrentHashMap<>();
  private final Map<Integer, Double> factors = new ConcurrentHashMap<>();
  private final Map<String, Integer> failures = new ConcurrentHashMap<>();
  private final Map<String, Integer> calls = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> holds = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong(1);

  /** Is what the ranks of a communicator share. */
  private static final class World {
    final int size;
    final Map<Integer, Boolean> joined = new ConcurrentHashMap<>();
    final Map<Long, Meeting> meetings = new ConcurrentHashMap<>();
    final Map<String, ConcurrentLinkedQueue<byte[]>> messages = new ConcurrentHashMap<>();

    World(int size) {
      this.size = size;
    }

    ConcurrentLinkedQueue<byte[]> messages(int from, int to) {
      return messages.computeIfAbsent(from + ">" + to, key -> new ConcurrentLinkedQueue<>());
    }
  }

  /** Is a collective operation, with what ranks brought to it. */
  private static final class Meeting {
    final Map<Integer, byte[]> brought = new ConcurrentHashMap<>();
    final Map<Integer, String> calls = new ConcurrentHashMap<>();
  }

  private static final class Comm {
    final World world;
    final int rank;
    final AtomicLong collectives = new AtomicLong();
    volatile boolean aborted;
    volatile boolean busy;
    volatile int failure;

    Comm(World world, int rank) {
      this.world = world;
      this.rank = rank;
    }
  }

  /** Is a part of a call, to be done on a stream. */
  private record Step(Comm comm, long stream, boolean isSend, Body body) {}

  private interface Body {
    boolean run() throws InterruptedException;
  }

  /** Plays NCCL beside a driver. */
  public FakeNccl(FakeCudaDriver fake) {
    this.fake = fake;
  }

  /** Lets all later calls of a function return a result. */
  public void failOn(String call, int result) {
    failures.put(call, result);
  }

  /** Lets all later calls of a function block until a latch is opened. */
  public void holdOn(String call, CountDownLatch latch) {
    holds.put(call, latch);
  }

  /** Lets all communicators report a failure. */
  public void failAll(int result) {
    comms.values().forEach(comm -> comm.failure = result);
  }

  /** Returns the number of communicators that are there. */
  public int communicators() {
    return comms.size();
  }

  /** Returns how often a function was called for which failures can be set. */
  public int calls(String call) {
    return calls.getOrDefault(call, 0);
  }

  private int result(String call) {
    int _ = calls.merge(call, 1, Integer::sum);
    FakeCudaDriver.await(holds.get(call));
    return failures.getOrDefault(call, NcclResult.SUCCESS);
  }

  private Comm comm(long handle) {
    Comm comm = comms.get(handle);
    assertThat(comm).as("the communicator is there").isNotNull();
    return comm;
  }

  @Override
  public int version() {
    return 22809;
  }

  @Override
  public byte[] uniqueId() {
    return ByteBuffer.allocate(UNIQUE_ID_BYTES).putLong(next.getAndIncrement()).array();
  }

  @Override
  public long init(byte[] id, int size, int rank, int mostBlocks) {
    int _ = fake.contexts().requireDevice("ncclCommInitRankConfig");
    World world = worlds.computeIfAbsent(ByteBuffer.wrap(id).getLong(), key -> new World(size));
    assertThat(world.size).as("size on all ranks").isEqualTo(size);
    return make(world, rank);
  }

  private long make(World world, int rank) {
    assertThat(world.joined.put(rank, true)).as("rank %d comes once", rank).isNull();
    long handle = fake.make("communicator");
    Comm comm = new Comm(world, rank);
    comm.failure = result("ncclCommInitRankConfig");
    comms.put(handle, comm);
    return handle;
  }

  @Override
  public int state(long communicator) {
    Comm comm = comm(communicator);
    if (comm.failure != 0) {
      return comm.failure;
    }
    if (comm.world.joined.size() < comm.world.size) {
      return NcclResult.IN_PROGRESS;
    }
    if (comm.busy) {
      comm.busy = false;
      return NcclResult.IN_PROGRESS;
    }
    return NcclResult.SUCCESS;
  }

  @Override
  public String lastError(long communicator) {
    return "played failure";
  }

  @Override
  public String describe(int result) {
    return "result " + result;
  }

  @Override
  public int groupStart() {
    assertThat(GROUP.get()).as("no group is open").isNull();
    GROUP.set(new ArrayList<>());
    return result("ncclGroupStart");
  }

  @Override
  public int groupEnd() {
    List<Step> steps = GROUP.get();
    GROUP.remove();
    assertThat(steps).as("a group is open").isNotNull();
    int result = result("ncclGroupEnd");
    if (steps.isEmpty() || result != NcclResult.SUCCESS) {
      return result;
    }
    Comm comm = steps.get(0).comm;
    assertThat(comm.world.joined).as("the communicator is made").hasSize(comm.world.size);
    long stream = steps.get(0).stream;
    fake.streams().require("ncclGroupEnd", stream).enqueue(() -> run(comm, steps));
    comm.busy = true;
    return NcclResult.IN_PROGRESS;
  }

  private static void run(Comm comm, List<Step> steps) throws InterruptedException {
    for (boolean sends : new boolean[] {true, false}) {
      for (Step step : steps) {
        if (step.isSend == sends && (comm.aborted || !step.body.run())) {
          return;
        }
      }
    }
  }

  private int add(String call, Comm comm, long stream, boolean isSend, Body body) {
    int result = result(call);
    if (result == NcclResult.SUCCESS) {
      List<Step> steps = GROUP.get();
      assertThat(steps).as("%s is in a group", call).isNotNull();
      steps.add(new Step(comm, stream, isSend, body));
    }
    return result;
  }

  /** Makes the results of all ranks out of what they brought. */
  private interface Rule {
    byte @Nullable [] result(List<byte[]> brought);
  }

  private int collective(
      String call,
      String arguments,
      long from,
      long bytes,
      long to,
      long communicator,
      long stream,
      UnaryOperator<byte[]> own,
      Rule rule) {
    Comm comm = comm(communicator);
    return add(
        call,
        comm,
        stream,
        false,
        () -> {
          long number = comm.collectives.getAndIncrement();
          Meeting meeting = comm.world.meetings.computeIfAbsent(number, key -> new Meeting());
          meeting.calls.put(comm.rank, call + " " + arguments);
          meeting.brought.put(comm.rank, own.apply(read(from, bytes)));
          while (meeting.brought.size() < comm.world.size) {
            if (comm.aborted) {
              return false;
            }
            Thread.sleep(0, 50_000);
          }
          assertThat(meeting.calls.values())
              .as("calls of all ranks")
              .containsOnly(meeting.calls.get(0));
          List<byte[]> brought = new ArrayList<>();
          for (int r = 0; r < comm.world.size; r++) {
            brought.add(meeting.brought.get(r));
          }
          byte[] result = rule.result(brought);
          if (result != null) {
            write(to, result);
          }
          return true;
        });
  }

  private byte[] read(long address, long bytes) {
    assertThat(fake.memory().isUsable(address, bytes)).as("memory is allocated").isTrue();
    return MemorySegment.ofAddress(address).reinterpret(bytes).toArray(ValueLayout.JAVA_BYTE);
  }

  private void write(long address, byte[] data) {
    assertThat(fake.memory().isUsable(address, data.length)).as("memory is allocated").isTrue();
    MemorySegment.copy(
        data,
        0,
        MemorySegment.ofAddress(address).reinterpret(data.length),
        ValueLayout.JAVA_BYTE,
        0,
        data.length);
  }

  private static DType dtype(int type) {
    return switch (type) {
      case 0 -> DType.INT8;
      case 1 -> DType.UINT8;
      case 2 -> DType.INT32;
      case 4 -> DType.INT64;
      case 6 -> DType.FLOAT16;
      case 7 -> DType.FLOAT32;
      case 8 -> DType.FLOAT64;
      case 9 -> DType.BFLOAT16;
      default -> throw new AssertionError("type " + type);
    };
  }

  private static MemorySegment segment(byte[] data) {
    return Arena.ofAuto().allocate(data.length, 16).copyFrom(MemorySegment.ofArray(data));
  }

  private static byte[] scaled(byte[] data, int type, double factor) {
    MemorySegment values = segment(data);
    HostReducer.scale(dtype(type), values, 0, data.length / dtype(type).byteSize(), factor);
    return values.toArray(ValueLayout.JAVA_BYTE);
  }

  private static byte[] sum(List<byte[]> brought, int type, int op) {
    ReduceOp.Kind kind = op < OPS.size() ? OPS.get(op) : ReduceOp.Kind.SUM;
    MemorySegment result = segment(brought.get(0));
    long count = result.byteSize() / dtype(type).byteSize();
    for (byte[] next : brought.subList(1, brought.size())) {
      HostReducer.reduce(
          kind == ReduceOp.Kind.AVG ? ReduceOp.Kind.SUM : kind,
          dtype(type),
          result,
          0,
          segment(next),
          0,
          count);
    }
    if (kind == ReduceOp.Kind.AVG) {
      HostReducer.divide(dtype(type), result, 0, count, brought.size());
    }
    return result.toArray(ValueLayout.JAVA_BYTE);
  }

  private int reducing(
      String call,
      long from,
      long elements,
      int type,
      int op,
      long to,
      long communicator,
      long stream,
      Rule rule) {
    int kind = Math.min(op, FIRST_FACTOR);
    String arguments = elements + " of type " + type + ", operator " + kind;
    long bytes = elements * dtype(type).byteSize();
    // The factor may be freed before the stream comes here.
    Double factor = factors.get(op);
    return collective(
        call,
        arguments,
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> factor == null ? data : scaled(data, type, factor),
        rule);
  }

  @Override
  public int allReduce(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    return reducing(
        "ncclAllReduce",
        from,
        count,
        type,
        op,
        to,
        communicator,
        stream,
        all -> sum(all, type, op));
  }

  @Override
  public int reduce(
      long from, long to, long count, int type, int op, int root, long communicator, long stream) {
    boolean own = comm(communicator).rank == root;
    return reducing(
        "ncclReduce",
        from,
        count,
        type,
        op,
        to,
        communicator,
        stream,
        all -> own ? sum(all, type, op) : null);
  }

  @Override
  public int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    Comm comm = comm(communicator);
    int part = (int) count * dtype(type).byteSize();
    return reducing(
        "ncclReduceScatter",
        from,
        count * comm.world.size,
        type,
        op,
        to,
        communicator,
        stream,
        all -> Arrays.copyOfRange(sum(all, type, op), comm.rank * part, (comm.rank + 1) * part));
  }

  @Override
  public int broadcast(long from, long to, long bytes, int root, long communicator, long stream) {
    return collective(
        "ncclBroadcast",
        bytes + " of " + root,
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> data,
        all -> all.get(root));
  }

  @Override
  public int allGather(long from, long to, long bytes, long communicator, long stream) {
    return collective(
        "ncclAllGather",
        String.valueOf(bytes),
        from,
        bytes,
        to,
        communicator,
        stream,
        data -> data,
        all -> {
          ByteArrayOutputStream joined = new ByteArrayOutputStream();
          all.forEach(joined::writeBytes);
          return joined.toByteArray();
        });
  }

  @Override
  public int send(long from, long bytes, int peer, long communicator, long stream) {
    Comm comm = comm(communicator);
    return add(
        "ncclSend",
        comm,
        stream,
        true,
        () -> comm.world.messages(comm.rank, peer).add(read(from, bytes)));
  }

  @Override
  public int receive(long to, long bytes, int peer, long communicator, long stream) {
    Comm comm = comm(communicator);
    return add(
        "ncclRecv",
        comm,
        stream,
        false,
        () -> {
          ConcurrentLinkedQueue<byte[]> messages = comm.world.messages(peer, comm.rank);
          byte[] message = messages.poll();
          while (message == null) {
            if (comm.aborted) {
              return false;
            }
            Thread.sleep(0, 50_000);
            message = messages.poll();
          }
          assertThat(message).as("a message").hasSize((int) bytes);
          write(to, message);
          return true;
        });
  }

  @Override
  public int scaledSum(long factor, int type, long communicator) {
    Comm _ = comm(communicator);
    int op = (int) (FIRST_FACTOR + next.getAndIncrement());
    double value =
        switch (dtype(type)) {
          case FLOAT32 -> Float.intBitsToFloat((int) factor);
          case FLOAT64 -> Double.longBitsToDouble(factor);
          case FLOAT16 -> Float.float16ToFloat((short) factor);
          case BFLOAT16 -> Float.intBitsToFloat((int) factor << 16);
          default -> throw new AssertionError("a factor of type " + type);
        };
    factors.put(op, value);
    return op;
  }

  @Override
  public int freeOperator(int op, long communicator) {
    assertThat(factors.remove(op)).as("operator %d is there", op).isNotNull();
    return NcclResult.SUCCESS;
  }

  @Override
  public int finish(long communicator) {
    int _ = result("ncclCommFinalize");
    comm(communicator).busy = true;
    return NcclResult.IN_PROGRESS;
  }

  @Override
  public int destroy(long communicator) {
    return end("ncclCommDestroy", communicator);
  }

  @Override
  public int abort(long communicator) {
    return end("ncclCommAbort", communicator);
  }

  private int end(String call, long communicator) {
    int _ = fake.contexts().requireDevice(call);
    comm(communicator).aborted = call.equals("ncclCommAbort");
    comms.remove(communicator);
    fake.destroy(call, communicator, "communicator");
    return NcclResult.SUCCESS;
  }
}
