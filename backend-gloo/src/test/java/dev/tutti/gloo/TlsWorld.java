package dev.tutti.gloo;

import dev.tutti.Settings;
import dev.tutti.testkit.TestAuthority;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Instant;

/** Creates settings for ranks with certificates from their own authority. */
final class TlsWorld {
  private final TestAuthority authority;

  TlsWorld(Path folder, String name) {
    try {
      authority = new TestAuthority(folder, name);
    } catch (GeneralSecurityException | IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns settings with a valid certificate. */
  Settings settings(String subject, String... more) {
    try {
      return settings(authority.issue(subject), more);
    } catch (GeneralSecurityException | IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Returns settings with a certificate that expires at a given time. */
  Settings settings(String subject, Instant end) {
    try {
      return settings(authority.issue(subject, end));
    } catch (GeneralSecurityException | IOException e) {
      throw new AssertionError(e);
    }
  }

  private Settings settings(TestAuthority.Issued own, String... more) {
    return GlooWorld.settings(more)
        .with("TUTTI_GLOO_TLS", "true")
        .with("GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT", own.certificate().toString())
        .with("GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY", own.key().toString())
        .with("GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE", authority.certificate().toString());
  }
}
