package dev.tutti.cuda.driver;

import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.driver.LinkCalls.Link;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A fake CUDA driver that needs no device: streams are threads with queues, device memory is host
 * memory, and kernels are Java code. It records the calls in order, fails the calls it is set to
 * fail, and tracks what was created and not destroyed. It checks for what the real driver does not
 * forgive: calls without the right context, work on freed memory, use of destroyed streams, calls
 * that invalidate a capture, and frees that wait for a stream that nothing releases.
 */
public final class FakeCudaDriver implements AutoCloseable {
  static final int INVALID_VALUE = 1;
  static final int INVALID_CONTEXT = 201;
  static final int INVALID_HANDLE = 400;
  static final int NOT_FOUND = 500;
  public static final int ILLEGAL_ADDRESS = 700;
  static final int CAPTURE_UNSUPPORTED = 900;
  static final int CAPTURE_INVALIDATED = 901;
  static final int CAPTURE_UNMATCHED = 903;
  static final int CAPTURE_UNJOINED = 904;
  static final int CAPTURE_ISOLATION = 905;
  static final int CAPTURED_EVENT = 907;

  private static final Map<Integer, String> NAMES =
      Map.of(
          INVALID_VALUE,
          "CUDA_ERROR_INVALID_VALUE",
          CudaException.OUT_OF_MEMORY,
          "CUDA_ERROR_OUT_OF_MEMORY",
          INVALID_CONTEXT,
          "CUDA_ERROR_INVALID_CONTEXT",
          INVALID_HANDLE,
          "CUDA_ERROR_INVALID_HANDLE",
          NOT_FOUND,
          "CUDA_ERROR_NOT_FOUND",
          ILLEGAL_ADDRESS,
          "CUDA_ERROR_ILLEGAL_ADDRESS");

  private final int devices;
  private final FakeMemory memory;
  private final FakeContexts contexts = new FakeContexts(this);
  private final FakeStreams streams = new FakeStreams(this);
  private final FakeEvents events = new FakeEvents(this);
  private final FakeKernels kernels = new FakeKernels(this);
  private final FakeGraphs graphs = new FakeGraphs(this);
  private final Races races;
  private final FakeBlocks blocks = new FakeBlocks();
  private final AtomicInteger streamNumbers = new AtomicInteger();
  private final FakeVirtualMemory virtualMemory = new FakeVirtualMemory(this);

  /** The maximum number of calls that are recorded. */
  private static final int MOST_CALLS = 1_000_000;

  private final List<String> calls = new ArrayList<>();
  private final Set<Set<Integer>> cutLinks = ConcurrentHashMap.newKeySet();
  private final List<Failure> failures = new ArrayList<>();
  private final Map<String, CountDownLatch> holds = new ConcurrentHashMap<>();
  private final Map<Long, String> living = new ConcurrentHashMap<>();
  private final Map<DeviceAttribute, Integer> attributes = new ConcurrentHashMap<>();
  private final AtomicLong nextHandle = new AtomicLong(0x1000);
  private volatile LinkCalls links = busId -> Collections.nCopies(18, new Link.ToSwitch());
  private volatile int version = CudaDrivers.REQUIRED_VERSION;
  private volatile int deviceError;
  private volatile boolean changesCarriers;
  private volatile BooleanSupplier dropsWait = () -> false;
  private volatile BooleanSupplier hidesWait = () -> false;

  private static final class Failure {
    private final String call;
    private int left;
    private final int code;

    Failure(String call, int left, int code) {
      this.call = call;
      this.left = left;
      this.code = code;
    }
  }

  /** Creates a fake of a machine with a given number of devices. */
  public FakeCudaDriver(int devices) {
    this.devices = devices;
    this.memory = new FakeMemory(this);
    this.races = new Races(memory);
  }

  /** Returns the port. */
  public CudaDriver driver() {
    return new CudaDriver(
        new FakeDevices(this), contexts, kernels, streams, events, memory, virtualMemory, graphs);
  }

  /** Returns the links set by {@link #setLinks}; initially each device has 18 links to a switch. */
  public LinkCalls links() {
    return busId -> links.links(busId);
  }

  /** Sets the links of the devices. */
  public void setLinks(LinkCalls newLinks) {
    links = newLinks;
  }

  int devices() {
    return devices;
  }

  int version() {
    return version;
  }

  /** Sets the driver's version. */
  public void setVersion(int newVersion) {
    version = newVersion;
  }

  /** Sets an attribute of all devices. */
  public void setAttribute(DeviceAttribute attribute, int value) {
    attributes.put(attribute, value);
  }

  /** Removes the peer access between two devices. */
  public void cutLink(int device, int peer) {
    cutLinks.add(Set.of(device, peer));
  }

  boolean hasLink(int device, int peer) {
    return !cutLinks.contains(Set.of(device, peer));
  }

  @Nullable Integer attribute(DeviceAttribute attribute) {
    return attributes.get(attribute);
  }

  /** Makes a call fail: the nth from now, 1 for the next. */
  public void failOn(String call, int nth, int code) {
    synchronized (calls) {
      failures.add(new Failure(call, nth, code));
    }
  }

  /** Cancels the failures requested through {@link #failOn} that have not occurred yet. */
  public void clearFailures() {
    synchronized (calls) {
      failures.clear();
    }
  }

  /** Makes all later calls of a function block until a latch is opened. */
  public void holdOn(String call, CountDownLatch latch) {
    holds.put(call, latch);
  }

  /** Waits for a latch, if there is one. */
  static void await(@Nullable CountDownLatch held) {
    try {
      if (held != null && !held.await(4, TimeUnit.MINUTES)) {
        throw new AssertionError("a call was held for ever");
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns the calls since the last {@link #clearCalls}, such as {@code cuEventRecord 0x1003}. */
  public List<String> calls() {
    synchronized (calls) {
      return List.copyOf(calls);
    }
  }

  /** Returns the calls of some functions. */
  public List<String> calls(String... names) {
    Collection<String> wanted = List.of(names);
    return calls().stream().filter(call -> wanted.contains(call.split(" ", 2)[0])).toList();
  }

  /** Forgets the calls so far. */
  public void clearCalls() {
    synchronized (calls) {
      calls.clear();
    }
  }

  /** Records a call, and makes it fail if requested. */
  void enter(String call, String arguments) {
    synchronized (calls) {
      if (calls.size() == MOST_CALLS) {
        calls.subList(0, MOST_CALLS / 2).clear();
      }
      calls.add(arguments.isEmpty() ? call : call + " " + arguments);
      for (Failure failure : failures) {
        if (failure.call.equals(call) && --failure.left == 0) {
          throw error(call, failure.code);
        }
      }
    }
    await(holds.get(call));
  }

  static CudaException error(String call, int code) {
    return new CudaException(call, code, NAMES.getOrDefault(code, "CUDA_ERROR_" + code));
  }

  /** Throws the error that the device has reported, as the real driver does from then on. */
  void requireHealthy(String call) {
    if (deviceError != 0) {
      throw error(call, deviceError);
    }
  }

  /** Reports that a kernel or copy failed. */
  public void fail(int code) {
    deviceError = code;
  }

  /**
   * Makes each thread lose its context after it queries a stream or event, as if it had blocked.
   */
  public void changeCarriers() {
    changesCarriers = true;
  }

  void carryOn() {
    if (changesCarriers) {
      contexts.forget();
    }
  }

  long make(String what) {
    long handle = nextHandle.getAndAdd(0x10);
    living.put(handle, what);
    return handle;
  }

  void keep(long handle, String what) {
    living.put(handle, what);
  }

  void destroy(String call, long handle, String what) {
    if (!living.remove(handle, what)) {
      throw error(call, INVALID_HANDLE);
    }
  }

  boolean isLiving(long handle) {
    return living.containsKey(handle);
  }

  /** Returns what was created and not destroyed, as counts by kind. */
  public Map<String, Integer> living() {
    Map<String, Integer> counts = new TreeMap<>();
    living.values().forEach(what -> counts.merge(what, 1, Integer::sum));
    return counts;
  }

  /** Returns the number of live objects of a kind. */
  public int living(String what) {
    return living().getOrDefault(what, 0);
  }

  FakeContexts contexts() {
    return contexts;
  }

  FakeStreams streams() {
    return streams;
  }

  FakeGraphs graphs() {
    return graphs;
  }

  FakeEvents events() {
    return events;
  }

  FakeStream newStream(int device) {
    return new FakeStream(device, streamNumbers.getAndIncrement(), races);
  }

  /** Returns the room for blocks on the devices. */
  public FakeBlocks blocks() {
    return blocks;
  }

  /** Returns the finder of races. */
  public Races races() {
    return races;
  }

  /**
   * Leaves out some orders of a stream after an event.
   *
   * @param drops returns whether to leave out the one that the calling thread is about to make
   */
  public void dropWaits(BooleanSupplier drops) {
    dropsWait = drops;
  }

  /**
   * Hides waits of streams for events and flags from the finder of races; they still take place.
   *
   * @param hides returns whether to hide the one that the calling thread is about to make
   */
  public void hideWaits(BooleanSupplier hides) {
    hidesWait = hides;
  }

  boolean hidesWait() {
    return hidesWait.getAsBoolean();
  }

  boolean dropsWait() {
    return dropsWait.getAsBoolean();
  }

  /** Returns the memory. */
  public FakeMemory memory() {
    return memory;
  }

  /** Gives a kernel of the loaded module a body. */
  public void kernel(String name, int parameters, FakeKernel body) {
    kernels.define(name, parameters, body);
  }

  /** Gives a kernel with parameters of given sizes a body. */
  public void kernel(String name, int[] sizes, FakeStructKernel body) {
    kernels.define(name, sizes, body);
  }

  static String hex(long handle) {
    return "0x" + Long.toHexString(handle);
  }

  /** Ends the threads of the streams. */
  @Override
  public void close() {
    streams.close();
    graphs.close();
  }
}
