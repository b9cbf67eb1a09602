package dev.tutti.cuda.nccl;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.spi.BackendContext;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Finds out which ranks of a group are of Tutti: those of PyTorch leave no sign. */
final class NcclRoster {
  /*
   * A rank of Tutti says that it is here before it enters a communicator; as nobody leaves the making of
   * that before all ranks have entered, whoever comes out of it sees the keys of all ranks of Tutti, and
   * knows whether all ranks are such.
   *
   * How a communicator is made depends on it before: NCCL wants all ranks to say alike whether those made of
   * it share what it has. Among ranks of Tutti they do, with PyTorch they do not. So rank 0 guesses for all,
   * once its id is there for ranks of PyTorch: the ranks are alone if all say within a while that they are
   * here. It waits for nothing only where it would wait for NCCL as well; where it guessed wrong, the ranks of
   * Tutti make another communicator. If rank 0 is of PyTorch, its id is there and its key is not.
   *
   * Both settings leave a key, and then look for that of the other: of two ranks that differ one sees it.
   */
  private static final String HERE = "tutti/here/";
  private static final String ALONE = "tutti/alone";
  private static final String LAZY = "tutti/lazy";
  private static final String EAGER = "tutti/eager";
  private static final Duration PATIENCE = Duration.ofSeconds(1);

  private final Store store;
  private final int rank;
  private final int size;

  NcclRoster(BackendContext context) {
    this.store = context.store();
    this.rank = context.rank();
    this.size = context.size();
  }

  private List<String> keys() {
    List<String> keys = new ArrayList<>(size);
    for (int r = 0; r < size; r++) {
      keys.add(HERE + r);
    }
    return keys;
  }

  /**
   * Says that this rank is here.
   *
   * @param process of this rank
   * @param lazy whether it makes its communicators later
   * @throws RendezvousException if another rank of Tutti has the other setting
   */
  void arrive(String process, boolean lazy) {
    if (!lazy) {
      store.set(HERE + rank, process);
    }
    store.set(lazy ? LAZY : EAGER, Integer.toString(rank));
    String other = lazy ? EAGER : LAZY;
    if (store.check(List.of(other))) {
      String differs = new String(store.get(other), StandardCharsets.UTF_8);
      throw new RendezvousException(
          "rank "
              + rank
              + "/"
              + size
              + ": "
              + CudaSettings.NCCL_LAZY.name()
              + " is "
              + (lazy ? "set here, but not on rank " : "not set here, but on rank ")
              + differs
              + "; all ranks of Tutti need the same");
    }
  }

  /**
   * Guesses, on all ranks of Tutti alike, whether there are no others; rank 0 has put its id.
   *
   * @param left until the end of the set-up
   */
  boolean expectAlone(Duration left) {
    if (rank == 0) {
      boolean alone = awaitAll(left.dividedBy(4));
      store.set(ALONE, alone ? "1" : "0");
      return alone;
    }
    return store.check(List.of(HERE + 0))
        && new String(store.get(ALONE, left), StandardCharsets.UTF_8).equals("1");
  }

  private boolean awaitAll(Duration limit) {
    try {
      store.await(keys(), limit.compareTo(PATIENCE) < 0 ? limit : PATIENCE);
      return true;
    } catch (StoreTimeoutException e) {
      return false;
    }
  }

  /** Tells whether all ranks are of Tutti; all are in the communicator. */
  boolean isAlone() {
    return store.check(keys());
  }

  /**
   * Tells, on all ranks alike, whether no two of them share a process: of those that do NCCL frees
   * the last one's with those of all others, which does not go with communicators that share what
   * they have.
   */
  boolean haveProcessesOfTheirOwn(Duration left) {
    Set<String> processes = new HashSet<>();
    for (byte[] process : store.multiGet(keys(), left)) {
      processes.add(new String(process, StandardCharsets.UTF_8));
    }
    return processes.size() == size;
  }

  /** Says which ranks of Tutti have not come, if any. */
  String missing() {
    List<Integer> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < size; r++) {
        if (!store.check(List.of(HERE + r))) {
          ranks.add(r);
        }
      }
    } catch (StoreException e) {
      return ""; // The failure that this would add to is what matters.
    }
    return ranks.isEmpty() ? "" : "; of ranks " + ranks + " none came that is a rank of Tutti";
  }
}
