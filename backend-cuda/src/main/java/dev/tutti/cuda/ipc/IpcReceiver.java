package dev.tutti.cuda.ipc;

import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.MemoryCalls;
import dev.tutti.cuda.driver.PointerInfo;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.memory.BlockTensors;
import dev.tutti.cuda.share.CounterFile;
import dev.tutti.cuda.share.ProcessMark;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * The receiving side of shared memory, which opens memory of other processes (c10d: {@code
 * CudaIPCReceivedData}). An allocation is opened once for all its tensors and closed with the last
 * of them; an event is closed as soon as a stream has been ordered after it.
 */
final class IpcReceiver {
  private static final Duration STREAM_PATIENCE = Duration.ofMinutes(30);

  private final Cuda cuda;
  private final JobSeal seal;
  private final boolean allowsOwn;
  private final long own = ProcessMark.own();
  private final Map<Counters, CounterFile> counters = new HashMap<>();
  private final Map<Allocation, Base> bases = new HashMap<>();
  private final List<Opened> open = new ArrayList<>();
  private boolean closed;

  private record Counters(long producer, int fd, long nonce) {}

  private record Allocation(int device, long producer, String handle) {}

  private static final class Base {
    private final long address;
    private int users;

    Base(long address) {
      this.address = address;
    }
  }

  IpcReceiver(Cuda cuda, JobSeal seal, boolean allowsOwn) {
    this.cuda = cuda;
    this.seal = seal;
    this.allowsOwn = allowsOwn;
  }

  synchronized ReceivedTensor open(byte[] bytes) {
    if (closed) {
      throw new IllegalStateException("CudaIpc was closed");
    }
    IpcHandle handle = IpcHandle.decode(bytes, seal);
    if (handle.host() != ProcessMark.host()) {
      throw new CudaIpcException(Reason.OTHER_HOST, "the handle was made on another host");
    }
    if (handle.producer() == own && !allowsOwn) {
      throw new CudaIpcException(
          Reason.OWN_PROCESS, "the handle was made by this process; use the tensor itself");
    }
    long size = handle.requireSizes();
    CudaDevice device = device(handle.pciBusId());
    CounterFile file = counters(handle);
    if (!file.take(handle.slot(), handle.ticket(), own)) {
      requireProducer(handle.producer());
      throw new CudaIpcException(
          Reason.USED_UP,
          "the handle was already opened, or taken back by process "
              + ProcessMark.pid(handle.producer()));
    }
    try {
      Opened opened = new Opened(handle, device, file, size);
      open.add(opened);
      return new ReceivedTensor(opened);
    } catch (RuntimeException | Error e) {
      file.putBack(handle.slot(), handle.ticket(), own);
      throw e;
    }
  }

  private CudaDevice device(String pciBusId) {
    for (int i = 0; i < cuda.deviceCount(); i++) {
      if (Parts.of(cuda).driver().devices().pciBusId(i).equals(pciBusId)) {
        return cuda.device(i);
      }
    }
    throw new CudaIpcException(
        Reason.NO_DEVICE,
        "the tensor is on the device at "
            + pciBusId
            + ", which this process may not use; CUDA_VISIBLE_DEVICES may be hiding it");
  }

  private CounterFile counters(IpcHandle handle) {
    requireProducer(handle.producer());
    Counters key = new Counters(handle.producer(), handle.fd(), handle.nonce());
    CounterFile known = counters.get(key);
    if (known != null) {
      return known;
    }
    closeUnused(handle.producer());
    try {
      CounterFile file = CounterFile.open(handle.producer(), handle.fd(), handle.nonce());
      counters.put(key, file);
      return file;
    } catch (IOException e) {
      throw new CudaIpcException(
          Reason.PRODUCER_GONE,
          "cannot read the counters of process " + ProcessMark.pid(handle.producer()),
          e);
    }
  }

  /**
   * Closes unused counter files of processes that have ended, and unused files of a producer that
   * makes new ones.
   */
  private void closeUnused(long producer) {
    counters
        .entrySet()
        .removeIf(
            entry -> {
              CounterFile file = entry.getValue();
              boolean used = open.stream().anyMatch(opened -> opened.file.equals(file));
              long of = entry.getKey().producer;
              if (used || (of != producer && ProcessMark.isAlive(of))) {
                return false;
              }
              file.close();
              return true;
            });
  }

  private static void requireProducer(long producer) {
    if (!ProcessMark.isAlive(producer)) {
      throw new CudaIpcException(
          Reason.PRODUCER_GONE,
          "process " + ProcessMark.pid(producer) + ", which shared the tensor, has ended");
    }
  }

  /** Returns whether an address lies in memory that is open here. */
  synchronized boolean has(Device device, long address) {
    return open.stream()
        .anyMatch(opened -> opened.device.device().equals(device) && opened.covers(address));
  }

  /** Returns the number of tensors that are open. */
  synchronized int count() {
    return open.size();
  }

  /** Refuses further opens; throws if tensors are still open. */
  synchronized void close() {
    if (!open.isEmpty()) {
      throw new IllegalStateException(
          open.size() + " tensors from other processes are still open; close them first");
    }
    closed = true;
    counters.values().forEach(CounterFile::close);
    counters.clear();
  }

  /** Closes everything when the driver closes. */
  synchronized void giveUp() {
    for (Opened opened : List.copyOf(open)) {
      opened.close();
    }
    close();
  }

  /** An open tensor. */
  final class Opened {
    private final IpcHandle handle;
    private final CudaDevice device;
    private final CudaStream stream;
    private final CounterFile file;
    private final Allocation allocation;
    private final Arena arena = Arena.ofShared();
    private final Base base;
    private final Tensor tensor;
    private boolean closed;

    Opened(IpcHandle handle, CudaDevice device, CounterFile file, long size) {
      this.handle = handle;
      this.device = device;
      this.stream = device.currentStream();
      this.file = file;
      this.allocation =
          new Allocation(
              device.index(), handle.producer(), HexFormat.of().formatHex(handle.memory()));
      Parts.of(device).context().enter();
      base = openBase();
      try {
        requireLength();
        order();
        MemorySegment segment =
            MemorySegment.ofAddress(base.address + handle.offset()).reinterpret(size, arena, null);
        tensor = BlockTensors.view(device.device(), segment, handle.dtype(), handle.shape());
      } catch (RuntimeException | Error e) {
        closeBase();
        throw e;
      }
    }

    private Base openBase() {
      Base known = bases.get(allocation);
      if (known == null) {
        known = new Base(Parts.of(cuda).driver().memory().openHandle(handle.memory()));
        bases.put(allocation, known);
      }
      known.users++;
      return known;
    }

    /** Checks the handle's size against what the driver reports about the memory, if anything. */
    private void requireLength() {
      PointerInfo info = Parts.of(cuda).driver().memory().pointerInfo(base.address);
      long there = info.rangeStart() + info.rangeBytes() - base.address;
      if (info.kind() == PointerInfo.MemoryKind.DEVICE && there < handle.allocationBytes()) {
        throw handle.wrongSize(there);
      }
    }

    private void order() {
      if (handle.hasEvent()) {
        CudaDriver driver = Parts.of(cuda).driver();
        long event = driver.events().openHandle(handle.event());
        try {
          driver.streams().waitFor(stream.handle(), event);
        } finally {
          driver.events().destroy(event);
        }
      }
    }

    Tensor tensor() {
      return tensor;
    }

    boolean covers(long address) {
      return address >= base.address && address - base.address < handle.allocationBytes();
    }

    boolean hasProducer() {
      return ProcessMark.isAlive(handle.producer());
    }

    void requireProducer() {
      IpcReceiver.requireProducer(handle.producer());
    }

    boolean isClosed() {
      synchronized (IpcReceiver.this) {
        return closed;
      }
    }

    /** Returns whether the device's context is broken, so that every call fails. */
    boolean isLost() {
      try {
        Parts.of(device).context().enter();
        MemoryCalls.Room _ = Parts.of(cuda).driver().memory().room();
        return false;
      } catch (CudaException e) {
        return true;
      }
    }

    void awaitStreams() {
      CudaStream current = device.currentStream();
      stream.await(STREAM_PATIENCE);
      if (!current.equals(stream)) {
        current.await(STREAM_PATIENCE);
      }
    }

    /**
     * Unmaps the memory and then returns the count, in this order: the producer may free the memory
     * as soon as the count is returned.
     */
    void close() {
      synchronized (IpcReceiver.this) {
        if (closed) {
          return;
        }
        arena.close();
        closed = true;
        try {
          Parts.of(device).context().enter();
          closeBase();
        } finally {
          boolean _ = file.release(handle.slot(), own);
          open.remove(this);
        }
      }
    }

    private void closeBase() {
      base.users--;
      if (base.users == 0) {
        bases.remove(allocation);
        Parts.of(cuda).driver().memory().closeHandle(base.address);
      }
    }
  }
}
