package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.Store;
import dev.tutti.StoreException;
import dev.tutti.StoreTimeoutException;
import dev.tutti.cli.process.LaunchException;
import dev.tutti.cli.process.Notice;
import dev.tutti.store.PrefixStore;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ThreadLocalRandom;

/** How the launcher of an elastic job is requested to run another number of ranks. */
final class Scaling implements AutoCloseable {
  /*
   * Request N is the key "scale/wanted/N", written by compare-and-set from absent, so one at a time
   * is under way; the key "scale/watched" is N. Either the launcher takes the request, or who wrote
   * it takes it back, both by compare-and-set. Then the launcher writes the answer, sets the next N,
   * and deletes the request. So each request has a key of its own that nobody else deletes, but who
   * writes one must check that N was not over by then: N advances only after the answer is written.
   */
  private static final String WATCHED = "scale/watched";
  private static final String REFUSED = "scale/refused";
  private static final String WANTED = "scale/wanted/";
  private static final String DONE = "scale/done/";
  private static final String TAKEN = " taken";
  private static final String TAKEN_BACK = " taken back";
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

  /**
   * Lets all requests fail, if the store answers.
   *
   * @param keys the launchers' part of the store
   * @param why what the command prints
   */
  static void refuse(Store keys, String why) {
    try {
      keys.set(REFUSED, why);
    } catch (StoreException e) {
      // Requests fail without the reason.
    }
  }

  private void run() {
    try {
      long number = 1;
      while (!closed) {
        if (serve(WANTED + number)) {
          number++;
          keys.set(WATCHED, Long.toString(number));
          boolean _ = keys.deleteKey(WANTED + (number - 1));
        }
      }
    } catch (StoreException e) {
      // The store has ended, and with it the job.
    }
  }

  /** Waits a while for a request; returns whether it is carried out or taken back. */
  private boolean serve(String key) {
    byte[] wanted;
    try {
      wanted = keys.get(key, SLICE);
    } catch (StoreTimeoutException e) {
      return false;
    }
    String request = new String(wanted, UTF_8);
    if (end(keys, key, request, TAKEN)) {
      String[] parts = request.split(" ", 3);
      CompletableFuture<String> answer = new CompletableFuture<>();
      listener.requested(Integer.parseInt(parts[1]), answer);
      keys.set(DONE + parts[0], answer.join());
    }
    return true;
  }

  /** Takes a request or takes it back, unless the other has; returns whether that is done. */
  private static boolean end(Store keys, String key, String request, String how) {
    if (request.endsWith(TAKEN_BACK)) {
      return false;
    }
    byte[] ended = (request + how).getBytes(UTF_8);
    Store.Swap swap = keys.compareSet(key, request.getBytes(UTF_8), ended);
    // The store may have done so without an answer, and was called again.
    return swap.stored() || Arrays.equals(swap.value(), ended);
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
   * @throws LaunchException if there is no elastic job, it has several nodes, or another request is
   *     under way
   */
  static String request(Store shared, int ranks, Duration timeout) {
    Store keys = new PrefixStore(NodeKeys.PREFIX, shared);
    if (keys.check(List.of(REFUSED))) {
      throw new LaunchException(1, keys.getString(REFUSED));
    }
    if (!keys.check(List.of(WATCHED))) {
      throw new LaunchException(1, "no job that tutti run --elastic started has its store there");
    }
    String id = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    String own = id + " " + ranks;
    String key = write(keys, own);
    try {
      String answer = new String(keys.get(DONE + id, timeout), UTF_8);
      boolean _ = keys.deleteKey(DONE + id);
      return answer;
    } catch (StoreTimeoutException e) {
      boolean isTakenBack = end(keys, key, own, TAKEN_BACK);
      throw new LaunchException(
          1,
          "the launcher did not answer within %s; %s"
              .formatted(
                  Notice.inWords(timeout),
                  isTakenBack ? "nothing was changed" : "it may still do so"),
          e);
    }
  }

  /** Writes a request, and returns its key. */
  private static String write(Store keys, String own) {
    byte[] bytes = own.getBytes(UTF_8);
    while (true) {
      String number = keys.getString(WATCHED);
      String key = WANTED + number;
      byte[] there = keys.compareSet(key, null, bytes).value();
      if (there != null && !isOwn(there, own)) {
        throw new LaunchException(
            1,
            "another tutti scale, to %s ranks, is under way; nothing was changed for this one"
                .formatted(new String(there, UTF_8).split(" ", 3)[1]));
      }
      String id = own.split(" ", 2)[0];
      if (keys.getString(WATCHED).equals(number) || keys.check(List.of(DONE + id))) {
        return key;
      }
      // That number was over before, and nobody reads what was written for it.
      boolean _ = keys.deleteKey(key);
    }
  }

  private static boolean isOwn(byte[] there, String own) {
    String text = new String(there, UTF_8);
    return text.equals(own) || text.equals(own + TAKEN);
  }
}
