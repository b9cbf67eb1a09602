package dev.tutti.lightgbm;

import com.microsoft.ml.lightgbm.lightgbmlib;
import dev.tutti.ProcessGroup;
import java.lang.foreign.Arena;
import java.util.Optional;
import java.util.function.IntSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The network for LightGBM's distributed training, backed by a process group.
 *
 * <p>While a network is open on a thread, the {@code lightgbmlib} calls of that thread that need
 * other ranks (those that create data sets and boosters, and train) use the group instead of
 * sockets. Every rank makes the same calls. The LightGBM library is the unmodified one in the jar
 * {@code lightgbmlib}. The parameters must include {@code tree_learner=data}, {@code voting} or,
 * with all rows on each rank, {@code feature}, and the group's size as {@code num_machines}; {@link
 * #parameters} checks them. With others, LightGBM trains on each rank alone:
 *
 * {@snippet file="dev/tutti/lightgbm/LightGbmSnippets.java" region="train"}
 *
 * <p>LightGBM keeps one network per thread, so all methods must be called on the thread that opened
 * it, and throw an {@link IllegalStateException} on any other. No other thread may use the group
 * while the network is open.
 */
public final class LightGbmNetwork implements AutoCloseable {
  private static final ThreadLocal<@Nullable LightGbmNetwork> OPEN = new ThreadLocal<>();

  private final Thread owner = Thread.currentThread();
  private final ProcessGroup group;
  private final Arena arena = Arena.ofConfined();
  private final NetworkFunctions functions;
  private boolean closed;

  private LightGbmNetwork(ProcessGroup group) {
    this.group = group;
    functions = new NetworkFunctions(group, lightgbmlib::LGBM_NetworkFree);
  }

  /**
   * Makes a group the network of this thread, and loads LightGBM's library if necessary. All ranks
   * call this: they exchange meaningless data for at most half a second, so that the JVM has
   * compiled the network's code when LightGBM trains. A group that fails meanwhile makes the first
   * {@link #call} throw.
   *
   * @param group the group of all ranks that train; it stays open when the network is closed
   * @throws LightGbmException if the library cannot be loaded, or refuses the network
   * @throws IllegalStateException if this thread already has an open network
   */
  public static LightGbmNetwork open(ProcessGroup group) {
    if (OPEN.get() != null) {
      throw new IllegalStateException("this thread already has an open LightGbmNetwork");
    }
    LightGbmLibrary.load();
    LightGbmNetwork network = new LightGbmNetwork(group);
    try {
      network.start();
    } catch (RuntimeException e) {
      network.arena.close();
      throw e;
    }
    OPEN.set(network);
    WarmUp.run(network.functions, group.size(), network.arena, System::nanoTime);
    return network;
  }

  private void start() {
    require(
        lightgbmlib.LGBM_NetworkInitWithFunctions(
            group.size(),
            group.rank(),
            NativePointer.of(functions.reduceScatterPointer(arena)),
            NativePointer.of(functions.allGatherPointer(arena))));
  }

  /**
   * Returns the parameters for data sets and boosters, with the group's size as {@code
   * num_machines}. Refuses parameters with which each rank would train a model of its own; a group
   * of one rank may use any.
   *
   * @param parameters the parameters, as LightGBM's C API takes them: {@code name=value}, separated
   *     by spaces
   * @throws IllegalArgumentException if {@code num_machines} is not the group's size, {@code
   *     tree_learner} is {@code serial}, or {@code feature} with {@code pre_partition}, or {@code
   *     linear_tree} is set
   */
  public String parameters(String parameters) {
    TrainingParameters given = new TrainingParameters(parameters);
    if (group.size() > 1) {
      given.require(group.rank(), group.size());
    }
    return given.haveRanks() ? parameters : parameters + " num_machines=" + group.size();
  }

  /**
   * Makes a LightGBM call, and throws if the call or the network failed. After a network failure,
   * data sets and boosters that the call created may hold numbers of this rank alone, and should be
   * freed.
   *
   * @param call the call, which returns 0 for success, as {@code lightgbmlib} methods do
   * @throws LightGbmException if the call failed, with LightGBM's reason, or if the group failed,
   *     with the group's exception as the cause
   */
  public void call(IntSupplier call) {
    requireOpen();
    throwFailure();
    int result = call.getAsInt();
    throwFailure();
    require(result);
  }

  /** Returns the exception thrown by the group that ended this network, or empty. */
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
      throw new IllegalStateException("this LightGbmNetwork belongs to thread " + owner.getName());
    }
    if (closed) {
      throw new IllegalStateException("this LightGbmNetwork is closed");
    }
  }

  /**
   * Ends LightGBM's use of the network on this thread. The group is unaffected.
   *
   * @throws IllegalStateException if called on a thread other than the one that opened the network
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
