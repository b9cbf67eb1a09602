package dev.tutti.testing;

import dev.tutti.Settings;
import dev.tutti.spi.BackendProvider;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.TreeSet;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * The plan of one invocation of a {@link World} test.
 *
 * @param size the number of ranks
 * @param backend the name of the backend
 * @param processes whether ranks are separate processes
 * @param timeout the deadline of all ranks together
 * @param seeds the number of worlds to simulate; 0 for one in real time
 */
record WorldPlan(int size, String backend, boolean processes, Duration timeout, int seeds) {
  private static final int DEFAULT_SIZE = 2;
  private static final String DEFAULT_BACKEND = "threaded";
  private static final double DEFAULT_TIMEOUT_SECONDS = 30;

  /** Returns the invocations of a method: all sizes on all backends. */
  static List<WorldPlan> of(Method method, Class<?> testClass) {
    Optional<World> own = AnnotationSupport.findAnnotation(method, World.class);
    Optional<World> ofClass = findOnClass(testClass);
    List<World> worlds = new ArrayList<>();
    own.ifPresent(worlds::add);
    ofClass.ifPresent(worlds::add);
    boolean processes = worlds.stream().anyMatch(World::processes);
    Duration timeout = timeout(worlds);
    int seeds =
        worlds.stream().mapToInt(World::seeds).filter(given -> given != 0).findFirst().orElse(0);
    List<WorldPlan> plans = new ArrayList<>();
    for (int size : sizes(worlds, method)) {
      for (String backend : backends(worlds)) {
        plans.add(new WorldPlan(size, backend, processes, timeout, seeds));
      }
    }
    plans.forEach(WorldPlan::requireSimulation);
    return plans;
  }

  /** Checks that this can be simulated, if it has to be. */
  private void requireSimulation() {
    if (seeds < 0) {
      throw new ExtensionConfigurationException(
          "seeds of a @World must be at least 0, not " + seeds);
    }
    if (seeds > 0 && (processes || !backend.equals(DEFAULT_BACKEND))) {
      throw new ExtensionConfigurationException(
          "a @World with seeds simulates ranks on backend 'threaded', not "
              + (processes ? "separate processes" : "on '" + backend + "'"));
    }
  }

  private static Optional<World> findOnClass(Class<?> testClass) {
    for (Class<?> type = testClass; type != null; type = type.getEnclosingClass()) {
      Optional<World> world = AnnotationSupport.findAnnotation(type, World.class);
      if (world.isPresent()) {
        return world;
      }
    }
    return Optional.empty();
  }

  private static int[] sizes(List<World> worlds, Method method) {
    for (World world : worlds) {
      boolean hasSize = world.size() != World.NO_SIZE;
      if (hasSize && world.sizes().length != 0) {
        throw new ExtensionConfigurationException(
            "@World of " + method.getName() + " has both size and sizes");
      }
      int[] sizes = hasSize ? new int[] {world.size()} : world.sizes();
      for (int size : sizes) {
        if (size < 1) {
          throw new ExtensionConfigurationException(
              (hasSize ? "the size" : "sizes") + " of a @World must be at least 1, not " + size);
        }
      }
      if (sizes.length != 0) {
        return sizes;
      }
    }
    return new int[] {DEFAULT_SIZE};
  }

  private static List<String> backends(List<World> worlds) {
    for (World world : worlds) {
      if (world.backends().length != 0) {
        return List.of(world.backends());
      }
    }
    return List.of(DEFAULT_BACKEND);
  }

  private static Duration timeout(List<World> worlds) {
    double seconds = DEFAULT_TIMEOUT_SECONDS;
    for (World world : worlds.reversed()) {
      double given = world.timeoutSeconds();
      seconds = given == World.NO_TIMEOUT ? seconds : given;
    }
    if (!(seconds > 0)) {
      throw new ExtensionConfigurationException(
          "timeoutSeconds of a @World must be more than 0, not " + seconds);
    }
    return Duration.ofNanos((long) (seconds * 1e9));
  }

  /**
   * Finds the backend.
   *
   * @throws ExtensionConfigurationException naming the known backends, if there is no such backend
   * @throws TestAbortedException with the reason, if the backend cannot run here
   */
  BackendProvider provider() {
    TreeSet<String> known = new TreeSet<>();
    for (BackendProvider provider : ServiceLoader.load(BackendProvider.class)) {
      if (provider.name().equals(backend)) {
        Optional<String> reason = provider.unusableReason(Settings.fromEnvironment());
        if (reason.isPresent()) {
          throw new TestAbortedException(
              "backend '" + backend + "' cannot run here: " + reason.get());
        }
        return provider;
      }
      known.add(provider.name());
    }
    throw new ExtensionConfigurationException(
        "@World names backend '" + backend + "', but the class path has " + known);
  }

  @Override
  public String toString() {
    return "[size=" + size + ", backend=" + backend + (processes ? ", processes" : "") + "]";
  }
}
