package dev.tutti.cuda.nccl;

import static dev.tutti.cuda.access.CudaAccess.access;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.CudaDevice;
import java.time.Duration;

/**
 * A maker of a communicator of ranks that share its id through the store, where one of them puts
 * it.
 *
 * @param nccl the NCCL calls
 * @param device this rank's device
 * @param store the group's store
 * @param key the key of the id
 * @param place this rank's place in the communicator
 * @param offers whether this rank puts the id
 * @param width the number of thread blocks per operation, and whether calls block
 */
record NcclLink(
    NcclCalls nccl,
    CudaDevice device,
    Store store,
    String key,
    Place place,
    boolean offers,
    Width width)
    implements LazyCommunicator.Maker {
  private static final Duration ID_WAIT = Duration.ofMillis(200);

  /**
   * A rank of a communicator.
   *
   * @param name the rank's name, for messages
   * @param size the number of ranks
   */
  record Place(String name, int rank, int size) {}

  /**
   * How operations run.
   *
   * @param mostBlocks the maximum number of thread blocks per operation; 0 to let NCCL choose
   * @param blocks whether calls block
   * @param ofTutti whether all ranks run Tutti, so that the id may be deleted once it was read
   */
  record Width(int mostBlocks, boolean blocks, boolean ofTutti) {
    /** The configuration that PyTorch uses. */
    static final Width PYTORCH = new Width(0, false, false);
  }

  @Override
  public Communicator begin(long deadlineNanos, Runnable look) {
    byte[] id = offers ? offerId() : takeId(deadlineNanos, look);
    look.run();
    return Communicator.begin(
        nccl,
        access().context(device),
        place.name,
        id,
        place.size,
        place.rank,
        width.mostBlocks,
        width.ofTutti);
  }

  @Override
  public void complete(Communicator begun, long deadlineNanos, Runnable look) {
    begun.awaitRanks(deadlineNanos);
    if (width.blocks) {
      begun.block(place.rank, width.mostBlocks, deadlineNanos, look);
    }
  }

  private byte[] offerId() {
    byte[] made = nccl.uniqueId();
    store.set(key, made);
    return made;
  }

  private byte[] takeId(long deadlineNanos, Runnable look) {
    while (true) {
      look.run();
      try {
        byte[] shared = checked(place.name, store.get(key, ID_WAIT));
        if (width.ofTutti) {
          boolean _ = store.deleteKey(key);
        }
        return shared;
      } catch (StoreTimeoutException e) {
        if (System.nanoTime() - deadlineNanos >= 0) {
          throw e;
        }
      }
    }
  }

  /**
   * Returns an id read from the store.
   *
   * @throws RendezvousException if it is not a valid id
   */
  static byte[] checked(String name, byte[] id) {
    if (id.length != NcclCalls.UNIQUE_ID_BYTES) {
      throw new RendezvousException(
          ("%s: the id of the NCCL communicator has %s bytes, not %s; does the rank that offers it"
                  + " use another backend?")
              .formatted(name, id.length, NcclCalls.UNIQUE_ID_BYTES));
    }
    return id;
  }
}
