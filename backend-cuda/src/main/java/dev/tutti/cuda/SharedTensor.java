package dev.tutti.cuda;

import dev.tutti.cuda.share.CounterFile;
import org.jspecify.annotations.Nullable;

/**
 * A tensor on its way to one other process. Its memory stays, also when the tensor is dropped,
 * until that process closed it or ended, or this is closed before it was opened. Any thread may
 * call any method.
 */
public final class SharedTensor implements AutoCloseable {
  private final IpcSender sender;
  private final CounterFile file;
  private final int slot;
  private final long ticket;
  private final byte[] handle;

  // Guarded by the sender.
  final IpcSender.Memory memory;
  final IpcEvents.@Nullable Event event;
  boolean unwanted;
  boolean returned;

  SharedTensor(
      IpcSender sender,
      IpcSlots.Slot slot,
      long ticket,
      byte[] handle,
      IpcSender.Memory memory,
      IpcEvents.@Nullable Event event) {
    this.sender = sender;
    this.file = slot.file();
    this.slot = slot.number();
    this.ticket = ticket;
    this.handle = handle;
    this.memory = memory;
    this.event = event;
  }

  /** Returns the bytes to send to the other process, by any means; it can open them once. */
  public byte[] handle() {
    return handle.clone();
  }

  /** Tells whether the other process has it open. */
  public boolean isOpen() {
    return sender.state(this) > 0;
  }

  /** Tells whether it was closed, there or here, or the process that had it open has ended. */
  public boolean isReturned() {
    sender.collect();
    return sender.state(this) == 0;
  }

  /**
   * Takes the tensor back if no process has opened it; it cannot be opened any more. One that is
   * open stays so until the other process closes it.
   */
  @Override
  public void close() {
    sender.revoke(this);
  }

  CounterFile file() {
    return file;
  }

  int slot() {
    return slot;
  }

  long ticket() {
    return ticket;
  }
}
