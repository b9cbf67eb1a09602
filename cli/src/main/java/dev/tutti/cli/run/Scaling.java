package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.store.PrefixStore;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;

/** How the launcher of an elastic job is requested to run another number of ranks. */
final class Scaling implements AutoCloseable {
  /*
   * A request is the key "scale/wanted", written by compare-and-set from absent, so one at a time is
   * under way. The launcher carries it out, writes the answer, and deletes the request.
   */
  private static final String WATCHED = "scale/watched";
  private static final String WANTED = "scale/wanted";
  private static final String DONE = "scale/done/";
  private static final Duration SLICE = Duration.ofSeconds(5);

  private final Store handle;
  private final Store keys;
  private final Listener listener;
  private volatile boolean closed;

  /** Carries out requests. */
  interface Listener {
    /**
     * Begins to carry out a request; does not block.
     *
     * @param ranks the number of ranks that is requested
     * @param answer completed with what was done, in words
     */
    void requested(int ranks, CompletableFuture<String> answer);
  }

  private Scaling(Store handle, Listener listener) {
    this.handle = handle;
    this.keys = new PrefixStore(NodeKeys.PREFIX, handle);
    this.listener = listener;
  }

  /**
   * Waits for requests, on a thread of its own.
   *
   * @param handle the store of the job, closed in the end
   */
  static Scaling watch(Store handle, Listener listener) {
    Scaling scaling = new Scaling(handle, listener);
    scaling.keys.set(WATCHED, "1");
    var _ = Thread.ofPlatform().daemon().name("tutti-scale").start(scaling::run);
    return scaling;
  }

  private void run() {
    try {
      while (!closed) {
        serveNext();
      }
    } catch (StoreException e) {
      // The store has ended, and with it the job.
    }
  }

  private void serveNext() {
    String[] wanted;
    try {
      wanted = new String(keys.get(WANTED, SLICE), UTF_8).split(" ", 2);
    } catch (StoreTimeoutException e) {
      return;
    }
    CompletableFuture<String> answer = new CompletableFuture<>();
    listener.requested(Integer.parseInt(wanted[1]), answer);
    keys.set(DONE + wanted[0], answer.join());
    boolean _ = keys.deleteKey(WANTED);
  }

  @Override
  public void close() {
    closed = true;
    handle.close();
  }

  /**
   * Requests another number of ranks, and returns what the launcher did.
   *
   * @param timeout how long the launcher may take
   * @throws LaunchException if there is no elastic job, or another request is under way
   */
  static String request(Store shared, int ranks, Duration timeout) {
    Store keys = new PrefixStore(NodeKeys.PREFIX, shared);
    if (!keys.check(List.of(WATCHED))) {
      throw new LaunchException(
          1, "no job of a single node that tutti run --elastic started has its store there");
    }
    String id = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    byte[] own = (id + " " + ranks).getBytes(UTF_8);
    Store.Swap swap = keys.compareSet(WANTED, null, own);
    byte[] there = swap.value();
    if (!swap.stored() && there != null) {
      throw new LaunchException(
          1,
          "another tutti scale, to %s ranks, is under way; nothing was changed for this one"
              .formatted(new String(there, UTF_8).replaceFirst(".* ", "")));
    }
    try {
      String answer = new String(keys.get(DONE + id, timeout), UTF_8);
      boolean _ = keys.deleteKey(DONE + id);
      return answer;
    } catch (StoreTimeoutException e) {
      boolean _ = keys.deleteKey(WANTED);
      throw new LaunchException(
          1, "the launcher did not answer within " + Notice.inWords(timeout), e);
    }
  }
}
