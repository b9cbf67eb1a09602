package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cuda.driver.FakeBlocks;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.cuda.driver.FakeStructKernel;
import dev.tutti.kernels.ChannelLayout;
import dev.tutti.kernels.ElementKernels;
import dev.tutti.kernels.ExchangeCall;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.Kernels;
import dev.tutti.kernels.ParameterType;
import dev.tutti.kernels.ReduceCall;
import dev.tutti.kernels.StridedKernel;
import dev.tutti.kernels.UpdateKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Fakes of the kernels of collectives and signals: they have the same results but use other
 * protocols. If ranks disagree on a call, the call waits until a deadline, as a real one may.
 * Messages pass through queues. A queue belongs to a sender and the receiver of a channel, and a
 * channel is identified by a number in the receiver's area.
 */
final class FakeCollectives {
  private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
  private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** The operators, in the order of their numbers in the kernels. */
  private static final List<ReduceOp.Kind> OPS =
      List.of(
          ReduceOp.Kind.SUM,
          ReduceOp.Kind.AVG,
          ReduceOp.Kind.PRODUCT,
          ReduceOp.Kind.MIN,
          ReduceOp.Kind.MAX,
          ReduceOp.Kind.BAND,
          ReduceOp.Kind.BOR,
          ReduceOp.Kind.BXOR,
          ReduceOp.Kind.PREMUL_SUM);

  private static final int ABORTED = 3;
  private static final int TIMED_OUT = 2;

  private final FakeCudaDriver fake;
  private final Map<String, LinkedBlockingQueue<Message>> queues = new ConcurrentHashMap<>();

  @SuppressWarnings("ArrayRecordComponent") // never compared
  private record Message(String call, byte[] data) {}

  private final Map<String, AtomicLong> begun = new ConcurrentHashMap<>();

  /** Counts the parts that ranks wrote to other ranks' memory instead of to slots. */
  final AtomicLong directParts = new AtomicLong();

  private static final long NUMBER = 15;

  private FakeCollectives(FakeCudaDriver fake) {
    this.fake = fake;
  }

  /** Installs all kernels except the stream block's in a driver. */
  static FakeCollectives install(FakeCudaDriver fake) {
    FakeCollectives all = new FakeCollectives(fake);
    for (Kernel kernel : Kernels.all()) {
      int[] sizes = kernel.parameters().stream().mapToInt(p -> size(p.type())).toArray();
      String name = kernel.name();
      if (kernel.equals(Kernels.putSignal())) {
        fake.kernel(name, sizes, (launch, a) -> all.swap(a, 0, 1));
      } else if (kernel.equals(Kernels.waitSignal())) {
        fake.kernel(name, sizes, (launch, a) -> all.swap(a, 1, 0));
      } else if (kernel.equals(Kernels.signalBarrier())) {
        fake.kernel(name, sizes, (launch, a) -> all.signalBarrier(a));
      } else if (kernel.equals(Kernels.barrier())) {
        fake.kernel(name, sizes, all.onMappedAreas(all::barrier));
      } else if (kernel.equals(Kernels.exchange())) {
        fake.kernel(name, sizes, all.onMappedAreas(all::exchange));
      } else if (kernel.equals(ElementKernels.convert())) {
        fake.kernel(name, sizes, (launch, a) -> new FakeElements(fake).convert(a));
      } else if (kernel.equals(ElementKernels.firstNan())) {
        fake.kernel(name, sizes, (launch, a) -> new FakeElements(fake).firstNan(a));
      } else if (UpdateKernels.all().contains(kernel)) {
        fake.kernel(name, sizes, (launch, a) -> new FakeUpdates(fake).run(kernel, a));
      } else if (kernel.equals(StridedKernel.copy())) {
        fake.kernel(name, sizes, new FakeStridedCopy(fake));
      } else if (name.startsWith("tutti_add_parts_")) {
        fake.kernel(name, sizes, (launch, a) -> all.addParts(name, a[0]));
      } else if (name.startsWith("tutti_coalesce_")) {
        fake.kernel(name, sizes, new FakeCoalescing(fake, kernel));
      } else if (!kernel.equals(Kernels.streamBlock())) {
        fake.kernel(name, sizes, all.onMappedAreas(all::reduce));
      }
    }
    return all;
  }

  /** Makes a kernel fail the device if it would access memory of a channel that is unmapped. */
  private FakeStructKernel onMappedAreas(FakeStructKernel kernel) {
    return (launch, arguments) -> {
      View view = new View(arguments[0]);
      for (int r = 0; r < view.ranks; r++) {
        if (!fake.memory().isUsable(view.area(r), Long.BYTES)) {
          fake.fail(FakeCudaDriver.ILLEGAL_ADDRESS);
          return;
        }
      }
      kernel.run(launch, arguments);
    };
  }

  private static int size(ParameterType type) {
    return switch (type) {
      case CHANNEL -> ChannelLayout.CHANNEL_BYTES;
      case REDUCE_CALL -> ReduceCall.BYTES;
      case EXCHANGE_CALL -> ExchangeCall.BYTES;
      case SIGNAL_PADS -> 8 * ChannelLayout.MAX_RANKS;
      default -> 8;
    };
  }

  private static MemorySegment at(long address, long bytes) {
    return MemorySegment.ofAddress(address).reinterpret(bytes);
  }

  private byte[] read(long address, long bytes) {
    assertThat(fake.memory().isUsable(address, bytes)).as("memory is allocated").isTrue();
    fake.races().read("a collective", address, bytes);
    return at(address, bytes).toArray(ValueLayout.JAVA_BYTE);
  }

  private void write(long address, byte[] data) {
    assertThat(fake.memory().isUsable(address, data.length)).as("memory is allocated").isTrue();
    fake.races().write("a collective", address, data.length);
    put(address, data);
  }

  private static void put(long address, byte[] data) {
    MemorySegment.copy(data, 0, at(address, data.length), ValueLayout.JAVA_BYTE, 0, data.length);
  }

  /** The deadline and the abort word of a kernel. */
  private static final class Patience {
    private final MemorySegment control;
    private final long until;

    Patience(long control, long nanos) {
      this.control = at(control, 8);
      this.until = nanos == 0 ? Long.MAX_VALUE : System.nanoTime() + nanos;
    }

    boolean isOver(int peer) throws InterruptedException {
      if ((int) INT.getAcquire(control, 4L) != 0) {
        return true;
      }
      boolean aborted = (int) INT.getAcquire(control, 0L) != 0;
      if (aborted || System.nanoTime() > until) {
        INT.setRelease(control, 4L, (aborted ? ABORTED : TIMED_OUT) | peer << 8);
        return true;
      }
      Thread.sleep(0, 50_000);
      return false;
    }
  }

  /** A channel as a kernel sees it. */
  private static final class View {
    final int rank;
    final int ranks;
    final long control;
    final MemorySegment channel;

    View(MemorySegment channel) {
      this.channel = channel;
      rank = channel.get(ValueLayout.JAVA_INT, 0);
      ranks = channel.get(ValueLayout.JAVA_INT, 4);
      control = channel.get(ValueLayout.JAVA_LONG, 24);
    }

    long area(int owner) {
      return channel.get(ValueLayout.JAVA_LONG, 40 + 8L * owner);
    }

    String queue(int receiver, int sender) {
      MemorySegment area = at(area(receiver), 8);
      long number = (long) LONG.getVolatile(area, 0L);
      if (number == 0) {
        LONG.compareAndSet(area, 0L, 0L, NUMBERS.incrementAndGet());
        number = (long) LONG.getVolatile(area, 0L);
      }
      return number + ":" + sender;
    }
  }

  /** The lanes that a kernel has of those of its call. */
  private record Lanes(String name, int block, int first, int count, int all) {
    static Lanes of(String launch, View view) {
      String[] parts = launch.split("[ x]");
      int count = Integer.parseInt(parts[parts.length - 2]);
      int first = view.channel.get(ValueLayout.JAVA_INT, 104);
      int all = view.channel.get(ValueLayout.JAVA_INT, 108);
      int block = Integer.parseInt(parts[parts.length - 1]);
      return new Lanes(parts[0], block, first, count, all == 0 ? count : all);
    }

    boolean areLast() {
      return first + count == all;
    }

    /** Returns the launch of the whole call. */
    String call() {
      return name.replace("_some_", "_") + " " + all + "x" + block;
    }
  }

  /**
   * Begins each block of a kernel once there is room on the device, in order, and ends it once the
   * blocks of that lane have begun on all ranks; returns whether that was before the deadline.
   */
  private boolean pass(View view, Lanes lanes, Patience patience) throws InterruptedException {
    FakeBlocks blocks = fake.blocks();
    if (!blocks.isLimited()) {
      return true;
    }
    int device = fake.memory().device(view.channel.get(ValueLayout.JAVA_LONG, 40 + 8L * view.rank));
    long earlier = begun(view, view.rank, view.rank).get();
    int first = 0;
    int next = 0;
    while (first < lanes.count) {
      boolean hasMoved = false;
      while (next < lanes.count && blocks.begin(device)) {
        for (int r = 0; r < view.ranks; r++) {
          begun(view, r, view.rank).incrementAndGet();
        }
        next++;
        hasMoved = true;
      }
      int slowest = slowest(view);
      long all = begun(view, view.rank, slowest).get() - earlier;
      if (first < next && all > first) {
        blocks.end(device, 1);
        first++;
      } else if (!hasMoved && patience.isOver(slowest)) {
        blocks.end(device, next - first);
        return false;
      }
    }
    return true;
  }

  private int slowest(View view) {
    int slowest = 0;
    for (int r = 1; r < view.ranks; r++) {
      if (begun(view, view.rank, r).get() < begun(view, view.rank, slowest).get()) {
        slowest = r;
      }
    }
    return slowest;
  }

  /** Returns how many blocks of a channel have begun on a rank, as another one knows. */
  private AtomicLong begun(View view, int receiver, int sender) {
    return begun.computeIfAbsent(view.queue(receiver, sender), _ -> new AtomicLong());
  }

  /** Returns a channel. Its kernels run one after another, as if each wrote this rank's area. */
  private View view(MemorySegment channel) {
    View view = new View(channel);
    fake.races().write("a kernel of a channel", view.area(view.rank), Long.BYTES);
    return view;
  }

  private void send(View view, int target, String call, byte[] data) {
    queue(view, target, view.rank).add(new Message(call, data));
  }

  private LinkedBlockingQueue<Message> queue(View view, int receiver, int sender) {
    return queues.computeIfAbsent(view.queue(receiver, sender), key -> new LinkedBlockingQueue<>());
  }

  private byte @Nullable [] receive(View view, int source, String call, Patience patience)
      throws InterruptedException {
    LinkedBlockingQueue<Message> queue = queue(view, view.rank, source);
    Message message = queue.poll();
    while (message == null || !message.call.equals(call)) {
      if (patience.isOver(source)) {
        return null;
      }
      message = message == null ? queue.poll(1, TimeUnit.MILLISECONDS) : message;
    }
    return message.data;
  }

  private void barrier(String launch, MemorySegment[] arguments) throws InterruptedException {
    View view = view(arguments[0]);
    Patience patience = new Patience(view.control, arguments[1].get(ValueLayout.JAVA_LONG, 0));
    if (!pass(view, Lanes.of(launch, view), patience)) {
      return;
    }
    for (int r = 0; r < view.ranks; r++) {
      send(view, r, launch, new byte[0]);
    }
    for (int r = 0; r < view.ranks; r++) {
      if (receive(view, r, launch, patience) == null) {
        return;
      }
    }
  }

  private void exchange(String launch, MemorySegment[] arguments) throws InterruptedException {
    View view = view(arguments[0]);
    if (!Lanes.of(launch, view).areLast()) {
      return;
    }
    MemorySegment call = arguments[1];
    Patience patience = new Patience(view.control, call.get(ValueLayout.JAVA_LONG, 4 * 64 + 8));
    for (int r = 0; r < view.ranks; r++) {
      long bytes = call.get(ValueLayout.JAVA_LONG, 128 + 8L * r);
      if (bytes > 0) {
        byte[] data = read(call.get(ValueLayout.JAVA_LONG, 8L * r), bytes);
        send(view, r, "exchange of " + bytes, data);
      }
    }
    for (int r = 0; r < view.ranks; r++) {
      long bytes = call.get(ValueLayout.JAVA_LONG, 192 + 8L * r);
      if (bytes > 0) {
        byte[] data = receive(view, r, "exchange of " + bytes, patience);
        if (data == null) {
          return;
        }
        write(call.get(ValueLayout.JAVA_LONG, 64 + 8L * r), data);
      }
    }
  }

  private void reduce(String launch, MemorySegment[] arguments) throws InterruptedException {
    View view = view(arguments[0]);
    MemorySegment call = arguments[1];
    long in = call.get(ValueLayout.JAVA_LONG, 0);
    long out = call.get(ValueLayout.JAVA_LONG, 8);
    long bytes = call.get(ValueLayout.JAVA_LONG, 16);
    long part = call.get(ValueLayout.JAVA_LONG, 24);
    int op = call.get(ValueLayout.JAVA_INT, 48);
    int sources = call.get(ValueLayout.JAVA_INT, 52);
    int targets = call.get(ValueLayout.JAVA_INT, 56);
    Patience patience = new Patience(view.control, call.get(ValueLayout.JAVA_LONG, 40));
    Lanes lanes = Lanes.of(launch, view);
    if (!pass(view, lanes, patience) || !lanes.areLast()) {
      return;
    }
    String what =
        String.join(
            " ",
            lanes.call(),
            String.valueOf(bytes),
            String.valueOf(part),
            String.valueOf(op),
            String.valueOf(sources),
            String.valueOf(targets),
            String.valueOf(call.get(ValueLayout.JAVA_INT, 60)));
    boolean contributes = (sources >> view.rank & 1) == 1;
    byte[] own = contributes ? read(in, bytes) : new byte[0];
    if (contributes && OPS.get(op) == ReduceOp.Kind.PREMUL_SUM) {
      own = scaled(dtype(launch), own, call.get(ValueLayout.JAVA_DOUBLE, 32));
    }
    for (int r = 0; r < view.ranks; r++) {
      send(view, r, what, own);
    }
    MemorySegment result = Arena.ofAuto().allocate(bytes, 8);
    DType dtype = dtype(launch);
    ReduceOp.Kind kind = OPS.get(op);
    List<MemorySegment> inputs = new ArrayList<>();
    for (int r = 0; r < view.ranks; r++) {
      byte[] data = receive(view, r, what, patience);
      if (data == null) {
        return;
      }
      if ((sources >> r & 1) == 0) {
        continue;
      }
      MemorySegment from = Arena.ofAuto().allocate(bytes, 8).copyFrom(MemorySegment.ofArray(data));
      inputs.add(from);
    }
    HostReducer.combineAll(
        kind, dtype, result, 0, inputs.toArray(MemorySegment[]::new), 0, bytes / dtype.byteSize());
    byte[] all = result.toArray(ValueLayout.JAVA_BYTE);
    if (launch.contains("unequal")) {
      long end = view.rank + 1 < view.ranks ? shared(call, view.rank + 1) >> 4 : bytes;
      write(out, Arrays.copyOfRange(all, (int) (shared(call, view.rank) >> 4), (int) end));
    } else if (targets == 0) {
      write(out, Arrays.copyOfRange(all, (int) (view.rank * part), (int) ((view.rank + 1) * part)));
    } else if (launch.contains("chunks")) {
      spread(view, call, all, patience);
    } else if ((targets >> view.rank & 1) == 1 && out != 0) {
      write(out, all);
    }
  }

  private void addParts(String name, MemorySegment call) {
    long count = call.get(ValueLayout.JAVA_LONG, 0);
    if (count != 0) {
      int _ = (int) INT.getAndAdd(at(count, Integer.BYTES), 0L, 1);
    }
    long bytes = call.get(ValueLayout.JAVA_LONG, 16);
    ReduceOp.Kind kind = OPS.get(call.get(ValueLayout.JAVA_INT, 48));
    DType dtype = dtype(name);
    List<MemorySegment> inputs = new ArrayList<>();
    for (int r = 0; r < Integer.bitCount(call.get(ValueLayout.JAVA_INT, 52)); r++) {
      byte[] part = read(shared(call, r), bytes);
      inputs.add(Arena.ofAuto().allocate(bytes, 8).copyFrom(MemorySegment.ofArray(part)));
    }
    MemorySegment result = Arena.ofAuto().allocate(bytes, 8);
    HostReducer.combineAll(
        kind, dtype, result, 0, inputs.toArray(MemorySegment[]::new), 0, bytes / dtype.byteSize());
    write(call.get(ValueLayout.JAVA_LONG, 8), result.toArray(ValueLayout.JAVA_BYTE));
  }

  /**
   * Writes this rank's part to the ranks that share memory with it, and keeps what other ranks do
   * not write.
   */
  private void spread(View view, MemorySegment call, byte[] all, Patience patience)
      throws InterruptedException {
    long out = call.get(ValueLayout.JAVA_LONG, 8);
    long part = call.get(ValueLayout.JAVA_LONG, 24);
    int targets = call.get(ValueLayout.JAVA_INT, 56);
    long number = shared(call, view.rank) & NUMBER;
    for (int r = 0; r < view.ranks; r++) {
      send(view, r, "target", ByteBuffer.allocate(8).putLong(shared(call, r)).array());
    }
    for (int r = 0; r < view.ranks; r++) {
      byte[] data = receive(view, r, "target", patience);
      if (data == null) {
        return;
      }
      long target = ByteBuffer.wrap(data).getLong();
      boolean direct = r != view.rank && number != 0 && (target & NUMBER) == number;
      if (direct && (targets >> r & 1) == 1) {
        // Another rank's memory, which that rank's kernel writes as far as races matter.
        long begin = Math.min(all.length, view.rank * part);
        put((target & ~NUMBER) + begin, partOf(all, view.rank, part));
        directParts.incrementAndGet();
      }
      if ((targets >> view.rank & 1) == 1) {
        long begin = out + Math.min(all.length, r * part);
        byte[] written = partOf(all, r, part);
        fake.races().write("a collective", begin, written.length);
        if (!direct) {
          write(begin, written);
        }
      }
    }
    for (int r = 0; r < view.ranks; r++) {
      send(view, r, "written", new byte[0]);
    }
    for (int r = 0; r < view.ranks; r++) {
      if (receive(view, r, "written", patience) == null) {
        return;
      }
    }
  }

  private static long shared(MemorySegment call, int rank) {
    return call.get(ValueLayout.JAVA_LONG, 64 + 8L * rank);
  }

  private static byte[] partOf(byte[] all, int rank, long part) {
    int begin = (int) Math.min(all.length, rank * part);
    int end = (int) Math.min(all.length, begin + part);
    return Arrays.copyOfRange(all, begin, end);
  }

  private static byte[] scaled(DType dtype, byte[] data, double factor) {
    MemorySegment values = Arena.ofAuto().allocate(data.length, 8);
    values.copyFrom(MemorySegment.ofArray(data));
    HostReducer.scale(dtype, values, 0, data.length / dtype.byteSize(), factor);
    return values.toArray(ValueLayout.JAVA_BYTE);
  }

  private static DType dtype(String launch) {
    String label = launch.split(" ")[0].replaceAll(".*_([a-z]+\\d+)_(sum|other)", "$1");
    return switch (label.toLowerCase(Locale.ROOT)) {
      case "f32" -> DType.FLOAT32;
      case "f64" -> DType.FLOAT64;
      case "f16" -> DType.FLOAT16;
      case "bf16" -> DType.BFLOAT16;
      case "i8" -> DType.INT8;
      case "u8" -> DType.UINT8;
      case "i32" -> DType.INT32;
      case "i64" -> DType.INT64;
      default -> throw new AssertionError(launch);
    };
  }

  private void swap(MemorySegment[] arguments, int expected, int desired)
      throws InterruptedException {
    long nanos = TimeUnit.MILLISECONDS.toNanos(arguments[2].get(ValueLayout.JAVA_LONG, 0));
    Patience patience = new Patience(arguments[1].get(ValueLayout.JAVA_LONG, 0), nanos);
    boolean _ = swap(arguments[0].get(ValueLayout.JAVA_LONG, 0), expected, desired, patience, 0);
  }

  private boolean swap(long word, int expected, int desired, Patience patience, int peer)
      throws InterruptedException {
    assertThat(fake.memory().isUsable(word, 4)).as("the pad is there").isTrue();
    while (!INT.compareAndSet(at(word, 4), 0L, expected, desired)) {
      if (patience.isOver(peer)) {
        return false;
      }
    }
    return true;
  }

  private void signalBarrier(MemorySegment[] arguments) throws InterruptedException {
    int channel = arguments[1].get(ValueLayout.JAVA_INT, 0);
    int rank = arguments[2].get(ValueLayout.JAVA_INT, 0);
    int ranks = arguments[3].get(ValueLayout.JAVA_INT, 0);
    long nanos = TimeUnit.MILLISECONDS.toNanos(arguments[5].get(ValueLayout.JAVA_LONG, 0));
    Patience patience = new Patience(arguments[4].get(ValueLayout.JAVA_LONG, 0), nanos);
    for (int r = 0; r < ranks; r++) {
      long pad = arguments[0].getAtIndex(ValueLayout.JAVA_LONG, r);
      if (r != rank && !swap(pad + 4L * (channel * ranks + rank), 0, 1, patience, r)) {
        return;
      }
    }
    long own = arguments[0].getAtIndex(ValueLayout.JAVA_LONG, rank);
    for (int r = 0; r < ranks; r++) {
      if (r != rank && !swap(own + 4L * (channel * ranks + r), 1, 0, patience, r)) {
        return;
      }
    }
  }
}
