package dev.tutti.cuda.ipc;

import static java.nio.charset.StandardCharsets.US_ASCII;

import dev.tutti.DType;
import dev.tutti.cuda.driver.EventCalls;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.share.CounterFile;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;

/**
 * What one process sends another about a tensor: where its counter is, what to open, and how to
 * interpret it. The encoded form ends with a seal of the job over all preceding bytes.
 *
 * @param host identifies the host
 * @param producer the mark of the producing process
 * @param fd the descriptor of the producer's counter file
 * @param nonce identifies that file
 * @param slot the position of the counter in the file
 * @param ticket the number that opens the counter
 * @param pciBusId the PCI bus ID of the device
 * @param memory the driver's handle for the allocation
 * @param allocationBytes the size of the allocation in bytes
 * @param offset the offset of the tensor in the allocation, in bytes
 * @param event the driver's handle for the event that follows the producer's work, or empty
 * @param dtype the element type
 * @param shape the sizes in elements
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record IpcHandle(
    long host,
    long producer,
    int fd,
    long nonce,
    int slot,
    long ticket,
    String pciBusId,
    byte[] memory,
    long allocationBytes,
    long offset,
    byte[] event,
    DType dtype,
    long[] shape) {
  private static final int MAGIC = 0x54435348;
  private static final int FIXED_BYTES = 4 + 8 + 8 + 8 + 4 + 8 + 4 + 8 + 8 + 8;
  private static final int MAX_BYTES = 4096;

  /** Returns the encoded bytes, with the seal. */
  byte[] encode(JobSeal seal) {
    byte[] bus = pciBusId.getBytes(US_ASCII);
    byte[] type = dtype.label().getBytes(US_ASCII);
    int variable = bus.length + memory.length + event.length + type.length + 5;
    int bytes = FIXED_BYTES + variable + Long.BYTES * shape.length;
    ByteBuffer buffer = ByteBuffer.allocate(bytes + JobSeal.BYTES);
    buffer.putInt(MAGIC).putLong(seal.job()).putLong(host).putLong(producer);
    buffer.putInt(fd).putLong(nonce).putInt(slot).putLong(ticket);
    buffer.putLong(allocationBytes).putLong(offset);
    for (byte[] part : new byte[][] {bus, memory, event, type}) {
      buffer.put((byte) part.length).put(part);
    }
    buffer.put((byte) shape.length);
    for (long size : shape) {
      buffer.putLong(size);
    }
    buffer.put(seal.of(buffer.array(), buffer.position()));
    return buffer.array();
  }

  /**
   * Decodes what {@link #encode} wrote.
   *
   * @throws CudaIpcException if the bytes were modified, or sealed by another job
   */
  static IpcHandle decode(byte[] bytes, JobSeal seal) {
    if (bytes.length < FIXED_BYTES + JobSeal.BYTES || bytes.length > MAX_BYTES) {
      throw noHandle("a tensor handle cannot have " + bytes.length + " bytes");
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes, 0, bytes.length - JobSeal.BYTES);
    if (buffer.getInt() != MAGIC) {
      throw noHandle("the bytes are not a tensor handle");
    }
    if (buffer.getLong() != seal.job()) {
      throw new CudaIpcException(Reason.OTHER_JOB, "the handle was made in another job");
    }
    byte[] expected = seal.of(bytes, buffer.limit());
    byte[] found = Arrays.copyOfRange(bytes, buffer.limit(), bytes.length);
    if (!MessageDigest.isEqual(expected, found)) {
      throw noHandle("the handle was altered in transit");
    }
    try {
      return read(buffer);
    } catch (BufferUnderflowException | IllegalArgumentException | NegativeArraySizeException e) {
      throw new CudaIpcException(
          Reason.NOT_A_HANDLE, "the handle was made by another version of Tutti", e);
    }
  }

  private static CudaIpcException noHandle(String message) {
    return new CudaIpcException(Reason.NOT_A_HANDLE, message);
  }

  private static IpcHandle read(ByteBuffer buffer) {
    long host = buffer.getLong();
    long producer = buffer.getLong();
    int fd = buffer.getInt();
    long nonce = buffer.getLong();
    int slot = buffer.getInt();
    long ticket = buffer.getLong();
    long allocationBytes = buffer.getLong();
    long offset = buffer.getLong();
    String bus = new String(part(buffer), US_ASCII);
    byte[] memory = part(buffer);
    byte[] event = part(buffer);
    String type = new String(part(buffer), US_ASCII);
    long[] shape = new long[buffer.get()];
    for (int i = 0; i < shape.length; i++) {
      shape[i] = buffer.getLong();
    }
    IpcHandle handle =
        new IpcHandle(
            host,
            producer,
            fd,
            nonce,
            slot,
            ticket,
            bus,
            memory,
            allocationBytes,
            offset,
            event,
            typeOf(type),
            shape);
    handle.requireSense();
    return handle;
  }

  /** Throws if the counter or the driver's handles cannot be valid. */
  private void requireSense() {
    boolean isCounter = slot >= 0 && slot < CounterFile.SLOTS && ticket > 0;
    boolean hasHandles =
        memory.length == EventCalls.IPC_HANDLE_BYTES && (event.length == 0 || hasEvent());
    if (!isCounter || !hasHandles) {
      throw new IllegalArgumentException("the counter or the handles of the driver are missing");
    }
  }

  private static byte[] part(ByteBuffer buffer) {
    byte[] part = new byte[buffer.get()];
    buffer.get(part);
    return part;
  }

  private static DType typeOf(String label) {
    return Arrays.stream(DType.values())
        .filter(type -> type.label().equals(label))
        .findAny()
        .orElseThrow(() -> new IllegalArgumentException("no dtype is named " + label));
  }

  /**
   * Throws if the sizes are inconsistent.
   *
   * @return the size of the tensor in bytes
   */
  long requireSizes() {
    try {
      long bytes = dtype.byteSize();
      boolean positive = offset >= 0;
      for (long size : shape) {
        positive &= size >= 0;
        bytes = Math.multiplyExact(bytes, size);
      }
      if (positive && Math.addExact(offset, bytes) <= allocationBytes) {
        return bytes;
      }
    } catch (ArithmeticException e) {
      // too large
    }
    throw wrongSize(allocationBytes);
  }

  /** Returns an exception that says that the tensor is longer than the memory. */
  CudaIpcException wrongSize(long bytesThere) {
    return new CudaIpcException(
        Reason.WRONG_SIZE,
        "the handle describes %s%s at byte %s of an allocation of %s bytes"
            .formatted(dtype.label(), Arrays.toString(shape), offset, bytesThere));
  }

  boolean hasEvent() {
    return event.length == EventCalls.IPC_HANDLE_BYTES;
  }
}
