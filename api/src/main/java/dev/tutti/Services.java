package dev.tutti;

import java.security.CodeSource;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Sorts what {@link java.util.ServiceLoader} finds, and refuses two where one is expected. */
final class Services {
  private Services() {}

  /**
   * Joins what two class loaders offer, each class once.
   *
   * @param first comes first
   * @param second may offer the same
   */
  static <T> Collection<T> distinct(Iterable<T> first, Iterable<T> second) {
    Map<Class<?>, T> found = new LinkedHashMap<>();
    first.forEach(each -> found.putIfAbsent(each.getClass(), each));
    second.forEach(each -> found.putIfAbsent(each.getClass(), each));
    return found.values();
  }

  /**
   * Returns the only one; null if there is none.
   *
   * @param what they do, in words
   * @throws BackendException if there are two, naming both and where they come from
   */
  static <T> @Nullable T only(String what, Collection<T> found) {
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
