package dev.tutti.cuda.ipc;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.memory.DeviceAllocator;
import dev.tutti.cuda.memory.DeviceBlock;
import dev.tutti.cuda.share.ProcessMark;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The sending side of shared memory, which shares memory of this process (c10d: {@code
 * CudaIPCSentData} and its limbo). Memory that is freed while other processes use it is in limbo:
 * it stays allocated until the last of them has returned it. Returned tensors are found through a
 * bitmap that consumers write; tensors of dead consumers are found by scanning all counters, at
 * most once every {@value #SWEEP_MILLIS} ms unless requested.
 */
final class IpcSender {
  /** The number of blocks in limbo at which a warning is logged. */
  static final int WARN_LIMBO = 1000;

  static final long SWEEP_MILLIS = 1000;
  private static final Duration STREAM_PATIENCE = Duration.ofMinutes(30);
  private static final System.Logger LOG = System.getLogger("dev.tutti.cuda.ipc.CudaIpc");

  private final Cuda cuda;
  private final JobSeal seal;
  private final long own = ProcessMark.own();
  private final SecureRandom random = new SecureRandom();
  private final IpcSlots slots = new IpcSlots(this::number);
  private final IpcEvents events;
  private final Map<DeviceBlock, Memory> memories = new HashMap<>();
  private final List<Memory> unused = new ArrayList<>();
  private final IntSupplier abandoned = this::abandoned;
  private long sweptAt = System.nanoTime();
  private int limbo;
  private boolean warned;
  private boolean closed;
  private boolean disposed;

  /** A block, and the number of other processes that it is shared with. */
  static final class Memory {
    private final CudaDevice device;
    private final DeviceBlock block;
    private int users;
    private boolean freed;

    Memory(CudaDevice device, DeviceBlock block) {
      this.device = device;
      this.block = block;
    }
  }

  IpcSender(Cuda cuda, JobSeal seal) {
    this.cuda = cuda;
    this.seal = seal;
    this.events = new IpcEvents(Parts.of(cuda).driver().events());
    IpcExit.watch(abandoned);
  }

  private long number() {
    return random.nextLong() >>> 1 | 1;
  }

  Tensor allocate(CudaDevice device, Arena arena, DType dtype, long... shape) {
    requireOpen();
    DeviceAllocator allocator = Parts.of(device).sharable();
    return BlockTensors.allocate(
        allocator,
        device.device(),
        Parts.of(device.currentStream()),
        block -> {
          synchronized (this) {
            memories.put(block, new Memory(device, block));
          }
        },
        this::free,
        arena,
        dtype,
        shape);
  }

  SharedTensor share(Tensor tensor) {
    collect();
    CudaDevice device = cuda.device(tensor.device().index());
    DeviceBlock block = Parts.of(device).sharable().find(tensor.segment().address());
    Memory memory;
    IpcSlots.Slot slot;
    synchronized (this) {
      requireOpen();
      memory = block == null ? null : memories.get(block);
      if (memory == null || memory.freed) {
        throw new CudaIpcException(
            Reason.NOT_SHARABLE,
            "only tensors made by CudaIpc.allocate can be shared, not " + tensor.describe());
      }
      slot = slots.take();
      memory.users++;
    }
    IpcEvents.@Nullable Event event = null;
    try {
      Parts.of(device).context().enter();
      event = events.take(device);
      mark(device, event);
      long ticket = number();
      byte[] bytes = handle(tensor, memory, slot, ticket, event).encode(seal);
      SharedTensor shared = new SharedTensor(this, slot, ticket, bytes, memory, event);
      synchronized (this) {
        requireOpen();
        slots.put(shared);
        slot.file().send(slot.number(), ticket);
      }
      return shared;
    } catch (RuntimeException | Error e) {
      synchronized (this) {
        if (!disposed) {
          giveUp(memory, event);
          slots.giveBack(slot.file(), slot.number());
          disposeIfDone();
        }
      }
      freeUnused();
      throw e;
    }
  }

  /**
   * Marks the end of the producer's current work; without an event, the host waits for that work.
   */
  private void mark(CudaDevice device, IpcEvents.@Nullable Event event) {
    CudaStream stream = device.currentStream();
    if (event == null) {
      stream.await(STREAM_PATIENCE);
    } else {
      Parts.of(cuda).driver().events().record(event.number(), stream.handle());
    }
  }

  private IpcHandle handle(
      Tensor tensor,
      Memory memory,
      IpcSlots.Slot slot,
      long ticket,
      IpcEvents.@Nullable Event event) {
    CudaDriver driver = Parts.of(cuda).driver();
    DeviceBlock block = memory.block;
    return new IpcHandle(
        ProcessMark.host(),
        own,
        slot.file().fd(),
        slot.nonce(),
        slot.number(),
        ticket,
        driver.devices().pciBusId(memory.device.index()),
        driver.memory().exportHandle(block.segmentAddress()),
        block.segmentBytes(),
        tensor.segment().address() - block.segmentAddress(),
        event == null ? new byte[0] : event.handle(),
        tensor.dtype(),
        tensor.shape());
  }

  /** Frees memory that no tensor of this process uses, either now or once it is returned. */
  private void free(DeviceBlock block) {
    boolean warn = false;
    synchronized (this) {
      Memory memory = memories.get(block);
      if (memory == null) {
        return; // the driver was closed
      }
      memory.freed = true;
      if (memory.users == 0) {
        drop(memory);
      } else {
        limbo++;
        warn = limbo > WARN_LIMBO && !warned;
        warned |= warn;
      }
    }
    if (warn) {
      LOG.log(
          Level.WARNING,
          "other processes still use more than "
              + WARN_LIMBO
              + " blocks of device memory that were freed here; the memory is released when they"
              + " close the tensors that they opened");
    }
    collect();
  }

  private void drop(Memory memory) {
    memories.remove(memory.block);
    unused.add(memory);
  }

  /** Reclaims what consumers closed and, from time to time, what dead consumers held. */
  void collect() {
    synchronized (this) {
      if (!disposed) {
        slots.drain(this::finish);
        if (System.nanoTime() - sweptAt > SWEEP_MILLIS * 1_000_000) {
          sweep();
        }
      }
    }
    freeUnused();
  }

  /**
   * Reclaims everything that was closed, or was open in a process that has ended.
   *
   * @return whether memory was freed
   */
  boolean collectAll() {
    synchronized (this) {
      if (!disposed) {
        sweep();
      }
    }
    return freeUnused();
  }

  private void sweep() {
    Map<Long, Boolean> alive = new HashMap<>();
    for (SharedTensor tensor : slots.all()) {
      withdrawUnwanted(tensor);
      long state = tensor.file.get(tensor.slot);
      if (state > 0 && !alive.computeIfAbsent(state, ProcessMark::isAlive)) {
        boolean _ = tensor.file.release(tensor.slot, state);
      }
      finish(tensor);
    }
    sweptAt = System.nanoTime();
  }

  /**
   * Takes back a tensor that is no longer wanted if no process has it open, including one that a
   * consumer put back because it could not open it.
   */
  private static void withdrawUnwanted(SharedTensor tensor) {
    if (tensor.unwanted) {
      boolean _ = tensor.file.revoke(tensor.slot, tensor.ticket);
    }
  }

  private void finish(SharedTensor tensor) {
    if (tensor.returned || tensor.file.get(tensor.slot) != 0) {
      return;
    }
    tensor.returned = true;
    giveUp(tensor.memory, tensor.event);
    slots.giveBack(tensor.file, tensor.slot);
    disposeIfDone();
  }

  private void giveUp(Memory memory, IpcEvents.@Nullable Event event) {
    if (event != null) {
      events.giveBack(event);
    }
    memory.users--;
    if (memory.freed && memory.users == 0) {
      limbo--;
      drop(memory);
    }
  }

  /**
   * Frees memory that is no longer used, without holding the lock, because an allocator may call
   * back.
   */
  private boolean freeUnused() {
    boolean freed = false;
    while (true) {
      Memory memory;
      synchronized (this) {
        if (unused.isEmpty()) {
          return freed;
        }
        memory = unused.removeLast();
      }
      Parts.of(memory.device).sharable().free(memory.block);
      freed = true;
    }
  }

  synchronized long state(SharedTensor tensor) {
    return tensor.returned ? 0 : tensor.file.get(tensor.slot);
  }

  void revoke(SharedTensor tensor) {
    synchronized (this) {
      if (!tensor.returned) {
        tensor.unwanted = true;
        withdrawUnwanted(tensor);
        finish(tensor);
      }
    }
    freeUnused();
  }

  /** Returns the number of blocks that were freed here and are still used elsewhere. */
  synchronized int limbo() {
    return limbo;
  }

  /** Returns the number of tensors that were sent and not yet returned. */
  synchronized int outstanding() {
    return disposed ? 0 : slots.used();
  }

  /**
   * Returns the number of tensors that living processes have open or may still open; 0 if sharing
   * was closed.
   */
  synchronized int abandoned() {
    if (closed) {
      return 0;
    }
    return (int) slots.all().stream().mapToLong(this::state).filter(IpcSender::isUsed).count();
  }

  private static boolean isUsed(long state) {
    return state < 0 || (state > 0 && ProcessMark.isAlive(state));
  }

  int eventsInUse() {
    return events.inUse();
  }

  synchronized int counterFiles() {
    return slots.files();
  }

  synchronized void requireOpen() {
    if (closed) {
      throw new IllegalStateException("CudaIpc was closed");
    }
  }

  /**
   * Stops sharing, and takes back tensors that no process has opened; the others are taken back as
   * they are returned.
   */
  void close() {
    List<SharedTensor> all;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      all = slots.all();
    }
    all.forEach(this::revoke);
    collectAll();
    synchronized (this) {
      disposeIfDone();
      if (!disposed) {
        LOG.log(
            Level.WARNING,
            "other processes still use "
                + slots.used()
                + " tensors shared by this one; they lose them when this process ends");
      }
    }
  }

  private void disposeIfDone() {
    if (closed && !disposed && slots.used() == 0) {
      dispose();
    }
  }

  private void dispose() {
    disposed = true;
    IpcExit.forget(abandoned);
    slots.close();
    events.close();
  }

  synchronized boolean isDisposed() {
    return disposed;
  }

  /** Gives everything up when the driver closes, whether or not others still use it. */
  synchronized void giveUp() {
    closed = true;
    if (!disposed) {
      for (SharedTensor tensor : slots.all()) {
        tensor.returned = true;
        if (tensor.event != null) {
          events.giveBack(tensor.event);
        }
      }
      dispose();
    }
    memories.clear();
    unused.clear();
    limbo = 0;
  }
}
