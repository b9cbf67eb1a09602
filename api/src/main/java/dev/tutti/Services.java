package dev.tutti;

import dev.tutti.spi.ProcessGroupFactory;
import dev.tutti.spi.TensorAllocator;
import java.security.CodeSource;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** Finds what other modules provide to this one, and refuses two where one is expected. */
final class Services {
  private static final ClassLoader OWN = Services.class.getClassLoader();

  private Services() {}

  /**
   * Returns the runtime.
   *
   * @throws BackendException if there is none, naming the jar that provides it, or more than one
   */
  static ProcessGroupFactory runtime() {
    ProcessGroupFactory found =
        only(
            "are runtimes",
            distinct(
                ServiceLoader.load(ProcessGroupFactory.class),
                ServiceLoader.load(ProcessGroupFactory.class, OWN)));
    if (found == null) {
      throw new BackendException(
          "no runtime on the class path; add the jar tutti-runtime, which the jars of the backends"
              + " bring along, such as tutti-backend-gloo");
    }
    return found;
  }

  /**
   * Returns what allocates the memory of tensors: what a module provides, else the JDK.
   *
   * @throws BackendException if more than one module provides it
   */
  static TensorAllocator tensorAllocator() {
    TensorAllocator found =
        only(
            "allocate tensors",
            distinct(
                ServiceLoader.load(TensorAllocator.class, OWN),
                ServiceLoader.load(TensorAllocator.class)));
    return found == null ? new ArenaAllocator() : found;
  }

  private static <T> Collection<T> distinct(Iterable<T> first, Iterable<T> second) {
    Map<Class<?>, T> found = new LinkedHashMap<>();
    first.forEach(each -> found.putIfAbsent(each.getClass(), each));
    second.forEach(each -> found.putIfAbsent(each.getClass(), each));
    return found.values();
  }

  private static <T> @Nullable T only(String what, Collection<T> found) {
    T one = null;
    for (T each : found) {
      if (one != null) {
        throw two(what, one, each);
      }
      one = each;
    }
    return one;
  }

  private static BackendException two(String what, Object one, Object other) {
    return new BackendException(
        "two providers "
            + what
            + ": "
            + origin(one)
            + " and "
            + origin(other)
            + "; remove one from the class path");
  }

  private static String origin(Object provider) {
    CodeSource source = provider.getClass().getProtectionDomain().getCodeSource();
    String where = source == null ? "the runtime image" : String.valueOf(source.getLocation());
    return provider.getClass().getName() + " in " + where;
  }
}
