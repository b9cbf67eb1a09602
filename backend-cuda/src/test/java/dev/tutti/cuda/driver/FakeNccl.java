package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.nccl.NcclCalls;
import dev.tutti.cuda.nccl.NcclException;
import dev.tutti.cuda.nccl.NcclResult;
import java.io.ByteArrayOutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Plays NCCL on the streams of a played driver. Calls are in progress for a while, as those of
 * communicators that do not block are. Checks that ranks make the same calls.
 */
public final class FakeNccl implements NcclCalls {
  private static final ThreadLocal<@Nullable List<Step>> GROUP = new ThreadLocal<>();
  private static final int FIRST_FACTOR = 16;
  private static final int INTERNAL_ERROR = 3;

  private final FakeCudaDriver fake;
  private final Map<Long, World> worlds = new ConcurrentHashMap<>();
  private final Map<Long, Comm> comms = new ConcurrentHashMap<>();
  private final Map<Integer, Double> factors = new ConcurrentHashMap<>();
  private final Map<String, Integer> failures = new ConcurrentHashMap<>();
  private final Map<String, Integer> calls = new ConcurrentHashMap<>();
  private final Map<String, CountDownLatch> holds = new ConcurrentHashMap<>();
  private final Map<String, Integer> waiting = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong(1);
  private volatile boolean sharesAborts = true;
  private volatile boolean oneProcess;

  /** Is what the ranks of a communicator share. */
  private static final class World {
    final int size;
    private @Nullable World blocking;
    final Map<Integer, Boolean> joined = new ConcurrentHashMap<>();
    final Map<Long, Meeting> meetings = new ConcurrentHashMap<>();
    final Map<String, ConcurrentLinkedQueue<byte[]>> messages = new ConcurrentHashMap<>();

    private @Nullable Boolean shares;
    private final List<Map<Integer, Integer>> splits = new ArrayList<>();
    private final Map<String, World> parts = new ConcurrentHashMap<>();

    World(int size) {
      this.size = size;
    }

    /** Checks that all ranks say alike whether those made of this share what it has. */
    synchronized void requireAlike(boolean own) {
      assertThat(shares == null ? own : shares).as("shares on all ranks").isEqualTo(own);
      shares = own;
    }

    synchronized boolean isShared() {
      return shares == null || shares;
    }

    /** Returns the colors of a split, to be added to. */
    synchronized Map<Integer, Integer> split(int number) {
      while (splits.size() <= number) {
        splits.add(new ConcurrentHashMap<>());
      }
      return splits.get(number);
    }

    World part(int split, int color, int ranks) {
      return parts.computeIfAbsent(split + "/" + color, key -> new World(ranks));
    }

    /** Returns that of the communicators whose calls block. */
    synchronized World blocking() {
      if (blocking == null) {
        blocking = new World(size);
      }
      return blocking;
    }

    ConcurrentLinkedQueue<byte[]> messages(int from, int to) {
      return messages.computeIfAbsent(from + ">" + to, key -> new ConcurrentLinkedQueue<>());
    }
  }

  /** Is a collective operation, with what ranks brought to it. */
  private static final class Meeting {
    final Map<Integer, byte[]> brought = new ConcurrentHashMap<>();
    final Map<Integer, String> calls = new ConcurrentHashMap<>();

    /** Where it is not, all wait in vain, as real ones may. */
    boolean isOfOneCall() {
      return Set.copyOf(calls.values()).size() == 1;
    }
  }

  private static final class Comm {
    final World world;
    final int rank;
    final @Nullable Comm parent;
    final AtomicLong collectives = new AtomicLong();
    volatile @Nullable Comm child;
    volatile boolean aborted;
    volatile boolean busy;
    volatile int failure;
    private int splits;
    private volatile @Nullable Splitting splitting;

    Comm(World world, int rank, @Nullable Comm parent) {
      this.world = world;
      this.rank = rank;
      this.parent = parent;
    }

    boolean isBlocking() {
      return parent != null;
    }

    boolean isComplete() {
      return world.joined.size() == world.size;
    }

    boolean isAborted() {
      return aborted || (parent != null && parent.aborted);
    }
  }

  /** Is a split that goes on; the communicator is there once all ranks have come. */
  private final class Splitting implements Child {
    private final Comm parent;
    private final int number;
    private final int color;
    private final int rank;
    private long handle;

    Splitting(Comm parent, int number, int color, int rank) {
      this.parent = parent;
      this.number = number;
      this.color = color;
      this.rank = rank;
      parent.world.split(number).put(parent.rank, color);
    }

    boolean isDone() {
      return parent.world.split(number).size() == parent.world.size;
    }

    @Override
    public synchronized long handle() {
      if (handle == 0 && color != NO_COLOR && isDone()) {
        Map<Integer, Integer> colors = parent.world.split(number);
        int ranks = (int) colors.values().stream().filter(each -> each == color).count();
        handle = make(parent.world.part(number, color, ranks), rank);
      }
      return handle;
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

  /** Returns how many calls of a function are blocked that an abort would end. */
  public int waiting(String call) {
    return waiting.getOrDefault(call, 0);
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
  public long init(byte[] id, int size, int rank, int mostBlocks, boolean shares) {
    int _ = fake.contexts().requireDevice("ncclCommInitRankConfig");
    World world = worlds.computeIfAbsent(ByteBuffer.wrap(id).getLong(), key -> new World(size));
    assertThat(world.size).as("size on all ranks").isEqualTo(size);
    world.requireAlike(shares);
    return make(world, rank);
  }

  private long make(World world, int rank) {
    assertThat(world.joined.put(rank, true)).as("rank %d comes once", rank).isNull();
    long handle = fake.make("communicator");
    Comm comm = new Comm(world, rank, null);
    comm.failure = result("ncclCommInitRankConfig");
    comms.put(handle, comm);
    return handle;
  }

  /** Lets an abort end the calls of one communicator alone. */
  public void shareNoAborts() {
    sharesAborts = false;
  }

  /** Lets all ranks be of one process; else each is of its own. */
  public void beOneProcess() {
    oneProcess = true;
  }

  @Override
  public String process() {
    return oneProcess ? "the process" : "process " + next.getAndIncrement();
  }

  @Override
  public boolean sharesAborts() {
    return sharesAborts;
  }

  @Override
  public Child splitBlocking(long communicator, int rank, int mostBlocks) {
    int result = result("ncclCommSplit");
    if (result != NcclResult.SUCCESS) {
      throw new NcclException("ncclCommSplit failed", result);
    }
    Comm parent = comm(communicator);
    assertThat(parent.isComplete() && !parent.busy).as("nothing is in progress").isTrue();
    assertThat(parent.world.isShared()).as("it shares what an abort sets").isTrue();
    World world = parent.world.blocking();
    Comm comm = new Comm(world, rank, parent);
    long handle = fake.make("communicator");
    comms.put(handle, comm);
    parent.child = comm;
    assertThat(world.joined.put(rank, true)).as("rank %d splits once", rank).isNull();
    return () -> comm.isComplete() && comms.containsKey(handle) ? handle : 0;
  }

  @Override
  public Child split(long communicator, int color, int rank) {
    int result = result("ncclCommSplit");
    if (result != NcclResult.SUCCESS) {
      throw new NcclException("ncclCommSplit failed", result);
    }
    Comm parent = comm(communicator);
    assertThat(parent.isComplete() && !parent.busy).as("nothing is in progress").isTrue();
    assertThat(parent.world.isShared()).as("it shares, which ranks of PyTorch do not").isFalse();
    Splitting made = new Splitting(parent, parent.splits++, color, rank);
    parent.splitting = made;
    return made;
  }

  /** Returns the color that each rank gave in a split of a communicator, by their ranks. */
  public Map<Integer, Integer> colors(byte[] id, int number) {
    return worlds.get(ByteBuffer.wrap(id).getLong()).split(number);
  }

  @Override
  public int state(long communicator) {
    Comm comm = comm(communicator);
    Splitting splitting = comm.splitting;
    if (splitting != null && !splitting.isDone()) {
      return NcclResult.IN_PROGRESS;
    }
    Comm child = comm.child;
    if (comm.failure != 0) {
      return comm.failure;
    }
    if (!comm.isComplete() || (child != null && !child.isComplete())) {
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
    Comm first = steps.isEmpty() ? null : steps.get(0).comm;
    int result =
        first != null && first.isBlocking()
            ? resultUnlessAborted("ncclGroupEnd", first)
            : result("ncclGroupEnd");
    if (first == null || result != NcclResult.SUCCESS) {
      return result;
    }
    Comm comm = first;
    assertThat(comm.world.joined).as("the communicator is made").hasSize(comm.world.size);
    long stream = steps.get(0).stream;
    fake.streams().require("ncclGroupEnd", stream).enqueue(() -> run(comm, steps));
    return begun(comm);
  }

  private static int begun(Comm comm) {
    if (comm.isBlocking()) {
      return NcclResult.SUCCESS;
    }
    comm.busy = true;
    return NcclResult.IN_PROGRESS;
  }

  /** Blocks as {@link #holdOn} says, until an abort at the latest. */
  private int resultUnlessAborted(String call, Comm comm) {
    CountDownLatch hold = holds.get(call);
    int _ = waiting.merge(call, 1, Integer::sum);
    try {
      while (hold != null && hold.getCount() > 0) {
        if (comm.isAborted()) {
          return INTERNAL_ERROR;
        }
        LockSupport.parkNanos(100_000);
      }
    } finally {
      int _ = waiting.merge(call, -1, Integer::sum);
    }
    return result(call);
  }

  private static void run(Comm comm, List<Step> steps) throws InterruptedException {
    for (boolean sends : new boolean[] {true, false}) {
      for (Step step : steps) {
        if (step.isSend == sends && (comm.isAborted() || !step.body.run())) {
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
          while (meeting.brought.size() < comm.world.size || !meeting.isOfOneCall()) {
            if (comm.isAborted()) {
              return false;
            }
            Thread.sleep(0, 50_000);
          }
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
    long bytes = elements * PlayedElements.dtype(type).byteSize();
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
        data -> factor == null ? data : PlayedElements.scaled(data, type, factor),
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
        all -> PlayedElements.sum(all, type, op));
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
        all -> own ? PlayedElements.sum(all, type, op) : null);
  }

  @Override
  public int reduceScatter(
      long from, long to, long count, int type, int op, long communicator, long stream) {
    Comm comm = comm(communicator);
    int part = (int) count * PlayedElements.dtype(type).byteSize();
    return reducing(
        "ncclReduceScatter",
        from,
        count * comm.world.size,
        type,
        op,
        to,
        communicator,
        stream,
        all ->
            Arrays.copyOfRange(
                PlayedElements.sum(all, type, op), comm.rank * part, (comm.rank + 1) * part));
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
            if (comm.isAborted()) {
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
        switch (PlayedElements.dtype(type)) {
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
    Comm comm = comm(communicator);
    if (comm.isBlocking()) {
      return resultUnlessAborted("ncclCommFinalize", comm);
    }
    int _ = result("ncclCommFinalize");
    return begun(comm);
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
    Comm comm = comm(communicator);
    comm.aborted = call.equals("ncclCommAbort");
    comms.remove(communicator);
    fake.destroy(call, communicator, "communicator");
    Comm child = comm.child;
    if (child != null && !child.isComplete()) {
      comms
          .entrySet()
          .removeIf(
              entry -> {
                boolean unfinished = entry.getValue() == child;
                if (unfinished) {
                  fake.destroy(call, entry.getKey(), "communicator");
                }
                return unfinished;
              });
    }
    return NcclResult.SUCCESS;
  }
}
