package dev.tutti.cuda.ipc;

import dev.tutti.cuda.share.CounterFile;
import org.jspecify.annotations.Nullable;

/**
 * A tensor that is handed over to one other process. Its memory stays allocated, even if the tensor
 * is dropped, until that process has closed it or ended, or until this object is closed before the
 * tensor was opened. All methods may be called from any thread.
 */
public final class SharedTensor implements AutoCloseable {
  private final IpcSender sender;
  private final byte[] handle;
  final CounterFile file;
  final int slot;
  final long ticket;

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

  /**
   * Returns the bytes to send to the other process by any means; that process can open them once.
   */
  public byte[] handle() {
    return handle.clone();
  }

  /** Returns whether the other process has the tensor open. */
  public boolean isOpen() {
    return sender.state(this) > 0;
  }

  /**
   * Returns whether the tensor was closed, here or in the other process, or whether the process
   * that had it open has ended.
   */
  public boolean isReturned() {
    sender.collect();
    return sender.state(this) == 0;
  }

  /**
   * Takes the tensor back if no process has opened it; it can then no longer be opened. A tensor
   * that is already open remains open until the other process closes it.
   */
  @Override
  public void close() {
    sender.revoke(this);
  }
}
