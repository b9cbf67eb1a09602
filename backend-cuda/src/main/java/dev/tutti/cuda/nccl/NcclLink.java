package dev.tutti.cuda.nccl;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.access.Parts;
import java.time.Duration;

/**
 * A maker of a communicator of ranks that share its id through the store, where the first of them
 * puts it, as PyTorch's ranks do.
 *
 * @param nccl the NCCL calls
 * @param device this rank's device
 * @param store the group's store
 * @param key the key of the id
 * @param place this rank's place in the communicator
 */
record NcclLink(NcclCalls nccl, CudaDevice device, Store store, String key, Place place)
    implements LazyCommunicator.Maker {
  private static final Duration ID_WAIT = Duration.ofMillis(200);

  /**
   * A rank of a communicator.
   *
   * @param name the rank's name, for messages
   * @param size the number of ranks
   */
  record Place(String name, int rank, int size) {}

  @Override
  public Communicator begin(long deadlineNanos, Runnable look) {
    byte[] id = place.rank == 0 ? offerId() : takeId(deadlineNanos, look);
    look.run();
    return Communicator.begin(
        nccl, Parts.of(device).context(), place.name, id, place.size, place.rank, false);
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
        return checked(place.name, store.get(key, ID_WAIT));
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
