package dev.tutti.cuda.nccl;

import dev.tutti.RendezvousException;
import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cuda.settings.CudaSettings;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Printable;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * A roster that finds out which ranks of a group run Tutti: PyTorch ranks leave no sign of
 * themselves.
 */
final class NcclRoster {
  /*
   * A Tutti rank announces itself before it enters a communicator. No rank leaves the creation of
   * the communicator before all ranks have entered, so a rank that leaves it sees the keys of all
   * Tutti ranks, and thus whether all ranks run Tutti.
   *
   * How to create a communicator depends on the answer beforehand: NCCL requires all ranks to agree
   * on whether communicators split from it share its resources. With only Tutti ranks they do, with
   * PyTorch ranks they do not. So rank 0 guesses for all ranks, once its id is available to PyTorch
   * ranks: the Tutti ranks are alone if all ranks announce themselves within a while. This wait is
   * wasted only where rank 0 would wait for NCCL as well; if the guess was wrong, the Tutti ranks
   * create another communicator. If rank 0 runs PyTorch, its id is present and its key is not.
   *
   * Ranks of either setting leave a key and then look for the other setting's key, so of two ranks
   * that differ, at least one notices.
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
    return IntStream.range(0, size).mapToObj(r -> HERE + r).toList();
  }

  /**
   * Announces this rank.
   *
   * @param process identifies this rank's process
   * @param lazy whether this rank creates its communicators later
   * @throws RendezvousException if another Tutti rank has the other setting
   */
  void arrive(String process, boolean lazy) {
    if (!lazy) {
      store.set(HERE + rank, process);
    }
    store.set(lazy ? LAZY : EAGER, Integer.toString(rank));
    String other = lazy ? EAGER : LAZY;
    if (store.check(List.of(other))) {
      String differs = Printable.decode(store.get(other));
      throw new RendezvousException(
          "rank %s/%s: %s is %s%s; it must be the same on all ranks of Tutti"
              .formatted(
                  rank,
                  size,
                  CudaSettings.NCCL_LAZY.name(),
                  lazy ? "set here, but not on rank " : "not set here, but on rank ",
                  differs));
    }
  }

  /**
   * Guesses, alike on all Tutti ranks, whether there are no other ranks; rank 0 must have put its
   * id.
   *
   * @param left the time left for the setup
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

  /** Returns whether all ranks run Tutti; all must have entered the communicator. */
  boolean isAlone() {
    return store.check(keys());
  }

  /**
   * Returns, alike on all ranks, whether no two of them share a process: when ranks share a
   * process, NCCL frees the communicator of the last one together with those of all others, which
   * does not work with communicators that share resources.
   */
  boolean haveProcessesOfTheirOwn(Duration left) {
    Set<String> processes = new HashSet<>();
    for (byte[] process : store.multiGet(keys(), left)) {
      processes.add(new String(process, StandardCharsets.UTF_8));
    }
    return processes.size() == size;
  }

  /** Names the Tutti ranks that have not arrived, if any. */
  String missing() {
    List<Integer> ranks = new ArrayList<>();
    try {
      for (int r = 0; r < size; r++) {
        if (!store.check(List.of(HERE + r))) {
          ranks.add(r);
        }
      }
    } catch (StoreException e) {
      return ""; // The failure to which this would be added is what matters.
    }
    return ranks.isEmpty() ? "" : "; ranks " + ranks + " did not arrive as ranks of Tutti";
  }
}
