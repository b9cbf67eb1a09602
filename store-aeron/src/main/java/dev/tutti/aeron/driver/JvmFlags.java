package dev.tutti.aeron.driver;

import dev.tutti.StoreException;
import java.util.Optional;
import org.agrona.concurrent.UnsafeBuffer;

/** The JVM flags without which Aeron cannot use shared memory. */
public final class JvmFlags {
  private static final String PACKAGE = "jdk.internal.misc";

  private JvmFlags() {}

  /**
   * Throws if a flag is missing.
   *
   * @throws StoreException describing what to add to the command line
   */
  public static void require() {
    Optional<String> missing = missing();
    if (missing.isPresent()) {
      throw new StoreException(missing.get());
    }
  }

  /** Returns what to add to the command line, or empty if nothing is missing. */
  public static Optional<String> missing() {
    Module agrona = UnsafeBuffer.class.getModule();
    if (Object.class.getModule().isExported(PACKAGE, agrona)) {
      return Optional.empty();
    }
    return Optional.of(
        "Aeron needs the JVM flag --add-exports java.base/%s=%s; add it to the command line or to"
                .formatted(PACKAGE, agrona.isNamed() ? agrona.getName() : "ALL-UNNAMED")
            + " JAVA_TOOL_OPTIONS (with '=' after --add-exports), or use TUTTI_STORE=tcp, which"
            + " needs none");
  }
}
