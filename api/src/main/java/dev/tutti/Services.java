package dev.tutti;

import java.security.CodeSource;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.ServiceLoader;
import org.jspecify.annotations.Nullable;

/** A lookup for services of which at most one may be present. */
final class Services {
  private Services() {}

  /**
   * Returns the only service of a type that the thread's context class loader or Tutti's own class
   * loader offers, or null if there is none.
   *
   * @param type the type of the service, which this module uses
   * @param what what services of that type do, in words that follow "two providers"
   * @throws BackendException if there are two, naming both and their origins
   */
  static <T> @Nullable T find(Class<T> type, String what) {
    Map<Class<?>, T> found = new LinkedHashMap<>();
    ServiceLoader.load(type).forEach(each -> found.putIfAbsent(each.getClass(), each));
    ServiceLoader.load(type, Services.class.getClassLoader())
        .forEach(each -> found.putIfAbsent(each.getClass(), each));
    T one = null;
    for (T each : found.values()) {
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
