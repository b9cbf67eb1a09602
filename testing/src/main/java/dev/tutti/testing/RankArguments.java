package dev.tutti.testing;

import dev.tutti.ProcessGroup;
import dev.tutti.Store;
import dev.tutti.fake.CallRecorder;
import dev.tutti.fake.Faults;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.spi.BackendProvider;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The arguments of a test method, in which each rank's own values replace the stand-ins. */
final class RankArguments {
  private final Method method;
  private final List<? extends @Nullable Object> given;
  private final Faults faults = new Faults();
  private final CallRecorder recorder = new CallRecorder();

  /**
   * Creates arguments.
   *
   * @param given the arguments that JUnit resolved, with stand-ins for those that differ between
   *     ranks
   */
  RankArguments(Method method, List<? extends @Nullable Object> given) {
    this.method = method;
    this.given = given;
  }

  /** Returns the world of a plan's ranks as threads, with the faults and the recorder asked for. */
  ThreadedWorld world(WorldPlan plan, BackendProvider provider) {
    ThreadedWorld world =
        ThreadedWorld.of(plan.size()).withProvider(provider).withTimeout(plan.timeout());
    if (has(Faults.class)) {
      world = world.withFaults(faults);
    }
    return has(CallRecorder.class) ? world.withRecorder(recorder) : world;
  }

  boolean has(Class<?> type) {
    return Arrays.asList(method.getParameterTypes()).contains(type);
  }

  /** Returns the arguments of one rank. */
  @Nullable Object[] of(ProcessGroup group) {
    @Nullable Object[] arguments = given.toArray();
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      Class<?> type = parameters[i].getType();
      if (type == ProcessGroup.class) {
        arguments[i] = group;
      } else if (type == Store.class) {
        arguments[i] = group.store();
      } else if (type == Faults.class) {
        arguments[i] = faults;
      } else if (type == CallRecorder.class) {
        arguments[i] = recorder;
      } else if (parameters[i].isAnnotationPresent(Rank.class)) {
        arguments[i] = group.rank();
      }
    }
    return arguments;
  }

  /** Returns the stand-in for a value until a rank runs. */
  @SuppressWarnings("NullAway") // JUnit takes null for a reference
  static Object standIn(Class<?> type) {
    return type == int.class ? -1 : null;
  }
}
