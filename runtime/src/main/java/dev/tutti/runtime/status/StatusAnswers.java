package dev.tutti.runtime.status;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

/** Answers inquiries for one rank. */
public final class StatusAnswers {
  private static final System.Logger LOG = System.getLogger(StatusAnswers.class.getName());
  private static final Duration LEASE = Duration.ofSeconds(15);

  private final Store store;
  private final int rank;
  private final Supplier<byte[]> status;

  /**
   * Creates the answers of a rank.
   *
   * @param store the store of the job
   * @param rank the rank among all
   * @param status produces the answer, anew each time
   */
  public StatusAnswers(Store store, int rank, Supplier<byte[]> status) {
    this.store = store;
    this.rank = rank;
    this.status = status;
  }

  /** Answers an inquiry, and the further ones of a command that watches. */
  public void serve(Inquiry inquiry) {
    try {
      long round = 1;
      do {
        store.await(List.of(inquiry.askKey(round)), round == 1 ? Duration.ZERO : LEASE);
        store.set(inquiry.answerKey(round, rank), status.get());
        round++;
      } while (!inquiry.once());
    } catch (StoreTimeoutException e) {
      LOG.log(Level.TRACE, "rank {0}: no more inquiries", rank);
    } catch (StoreException e) {
      LOG.log(Level.DEBUG, "rank {0}: cannot answer an inquiry: {1}", rank, e);
    }
  }
}
