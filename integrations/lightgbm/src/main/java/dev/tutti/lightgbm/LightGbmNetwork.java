package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.ProcessGroup;
import java.lang.foreign.Arena;
import java.util.Optional;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The network of LightGBM's distributed training, made of a process group.
 *
 * <p>While one is open on a thread, the calls of {@code lightgbmlib} of that thread which need
 * other ranks (those that make data sets and boosters, and train) take the group in place of
 * sockets. Every rank makes the same calls. LightGBM's library is the one of the jar {@code
 * lightgbmlib}, as it is. Parameters need {@code tree_learner=data}, {@code feature} or {@code
 * voting}, and the group's size as {@code num_machines}, without which LightGBM trains on each rank
 * alone:
 *
 * {@snippet file="dev/tutti/lightgbm/LightGbmSnippets.java" region="train"}
 *
 * <p>LightGBM keeps its network for each thread: all methods are for the thread that opened it, and
 * throw an {@link IllegalStateException} elsewhere. No other thread may use the group meanwhile.
 */
public final class LightGbmNetwork implements AutoCloseable {
  private static final ThreadLocal<@Nullable LightGbmNetwork> OPEN = new ThreadLocal<>();

  private final Thread owner = Thread.currentThread();
  private final Arena arena = Arena.ofConfined();
  private final NetworkFunctions functions;
  private boolean closed;

  private LightGbmNetwork(ProcessGroup group) {
    functions = new NetworkFunctions(group, lightgbmlib::LGBM_NetworkFree);
  }

  /**
   * Makes a group the network of this thread, and loads LightGBM's library if it is not.
   *
   * @param group of all ranks that train; stays open when the network is closed
   * @throws LightGbmException if the library cannot be loaded, or refuses
   * @throws IllegalStateException if this thread has one open already
   */
  public static LightGbmNetwork open(ProcessGroup group) {
    if (OPEN.get() != null) {
      throw new IllegalStateException("this thread has a LightGbmNetwork open already");
    }
    LightGbmLibrary.load();
    LightGbmNetwork network = new LightGbmNetwork(group);
    try {
      network.start(group);
    } catch (RuntimeException e) {
      network.arena.close();
      throw e;
    }
    OPEN.set(network);
    return network;
  }

  private void start(ProcessGroup group) {
    require(
        lightgbmlib.LGBM_NetworkInitWithFunctions(
            group.size(),
            group.rank(),
            NativePointer.of(functions.reduceScatterPointer(arena)),
            NativePointer.of(functions.allGatherPointer(arena))));
  }

  /**
   * Makes a call of LightGBM's and throws if that or the network failed. After a failure of the
   * network, data sets and boosters that it made may hold numbers of this rank alone: free them.
   *
   * @param call returns 0 for success, as those of {@code lightgbmlib} do
   * @throws LightGbmException if the call failed, with LightGBM's reason, or the group failed, with
   *     the group's exception as its cause
   */
  public void call(IntSupplier call) {
    requireOpen();
    throwFailure();
    int result = call.getAsInt();
    throwFailure();
    require(result);
  }

  /** Returns what the group threw, which ended this network, or empty. */
  public Optional<Throwable> failure() {
    return Optional.ofNullable(functions.failure());
  }

  private void throwFailure() {
    Throwable failure = functions.failure();
    if (failure != null) {
      throw new LightGbmException(
          "the network of LightGBM failed: " + failure.getMessage(), failure);
    }
  }

  private static void require(int result) {
    if (result != 0) {
      throw new LightGbmException("LightGBM: " + lightgbmlib.LGBM_GetLastError(), null);
    }
  }

  private void requireOpen() {
    if (!owner.equals(Thread.currentThread())) {
      throw new IllegalStateException("this LightGbmNetwork is that of thread " + owner.getName());
    }
    if (closed) {
      throw new IllegalStateException("this LightGbmNetwork is closed");
    }
  }

  /**
   * Takes LightGBM out of the network on this thread. The group stays as it is.
   *
   * @throws IllegalStateException on another thread than the one that opened it
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    requireOpen();
    closed = true;
    OPEN.remove();
    lightgbmlib.LGBM_NetworkFree();
    arena.close();
  }
}
