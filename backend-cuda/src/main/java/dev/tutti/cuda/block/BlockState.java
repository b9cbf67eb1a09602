package dev.tutti.cuda.block;

import dev.tutti.StreamBlockStatus;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.memory.PinnedBlock;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The state that a stream block's kernel shares with the host: two words. The host writes the
 * first, setting it to 1 to release the stream; the kernel writes its status to the second. Also
 * closes a block that has become unreachable, so that no stream is held forever.
 */
public final class BlockState implements Runnable {
  public static final long BYTES = 8;

  private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();
  private static final long RELEASE = 0;
  private static final long STATUS = 4;

  private final CudaDevice device;
  private final PinnedBlock words;
  private final AtomicBoolean ended = new AtomicBoolean();
  private boolean closed;
  private StreamBlockStatus last = StreamBlockStatus.UNKNOWN;

  BlockState(CudaDevice device) {
    this.device = device;
    this.words = Parts.of(device).pinned().allocate(BYTES);
    WORD.setRelease(words.segment(), RELEASE, 0);
    WORD.setRelease(words.segment(), STATUS, 0);
  }

  long address() {
    return words.address();
  }

  PinnedBlock words() {
    return words;
  }

  /** Reads the status that the kernel last wrote; after the end, the status at that time. */
  synchronized StreamBlockStatus status() {
    if (!closed) {
      last = StreamBlockStatus.ofCode((int) WORD.getAcquire(words.segment(), STATUS));
    }
    return last;
  }

  synchronized void release() {
    if (!closed) {
      WORD.setRelease(words.segment(), RELEASE, 1);
    }
  }

  /** Releases the stream, and frees the words as soon as the device is done with them. */
  void close() {
    if (ended.compareAndSet(false, true)) {
      end();
      Parts.of(device).openBlocks().remove(this);
      Parts.of(device).multiprocessors().leave();
    }
  }

  private synchronized void end() {
    status();
    release();
    closed = true;
    Parts.of(device).pinned().free(words);
  }

  /**
   * Releases the stream and keeps the words for good, because it is unknown when the device is done
   * with them.
   */
  void abandon() {
    if (ended.compareAndSet(false, true)) {
      release();
      Parts.of(device).openBlocks().remove(this);
      Parts.of(device).multiprocessors().leave();
    }
  }

  /** Closes the block after its last reference is gone. */
  @Override
  public void run() {
    close();
  }
}
