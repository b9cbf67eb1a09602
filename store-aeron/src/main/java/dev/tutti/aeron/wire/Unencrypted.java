package dev.tutti.aeron.wire;

import dev.tutti.Settings;
import dev.tutti.tls.TlsSettings;
import java.util.Optional;

/** The refusal of stores over Aeron if all traffic must be encrypted, since Aeron's UDP is not. */
public final class Unencrypted {
  private Unencrypted() {}

  /** Returns the reason why a store over Aeron must not be used, if there is one. */
  public static Optional<String> reason(Settings settings) {
    return settings.get(TlsSettings.ENABLED)
        ? Optional.of(
            TlsSettings.ENABLED.name()
                + " is set, but a store over Aeron does not encrypt its messages; use the store"
                + " over TCP (TUTTI_STORE=tcp)")
        : Optional.empty();
  }
}
