package dev.tutti.gloo.transport.connect;

import dev.tutti.Settings;
import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import org.jspecify.annotations.Nullable;

/**
 * How a rank protects its connections.
 *
 * @param token the token that both ends of a connection prove to each other; {@link JobToken#NONE}
 *     for no proof
 * @param tls presents certificates and encrypts; null for neither
 */
public record Protection(JobToken token, @Nullable SSLContext tls) {
  /** The flag of a rank with a token, in {@link PeerAddress}. */
  public static final long TOKEN = 1;

  /** The flag of a rank that encrypts. */
  public static final long TLS = 2;

  /**
   * Reads the settings.
   *
   * @param settings all settings
   * @throws IllegalArgumentException if a file cannot be read, or lacks the expected content
   */
  public static Protection of(Settings settings) {
    return new Protection(settings.get(JobToken.SETTING), TlsSettings.loadForGloo(settings));
  }

  /** Returns whether there is anything to prove on a new connection. */
  public boolean isOn() {
    return token.isSet() || tls != null;
  }

  /** Returns the flags that a rank publishes about its protection. */
  public long flags() {
    return (token.isSet() ? TOKEN : 0) | (tls != null ? TLS : 0);
  }

  /**
   * Creates the engine that encrypts one connection.
   *
   * @param connects whether this rank connects, and the peer accepts
   * @return the engine, or null if ranks do not encrypt
   */
  public @Nullable SSLEngine engine(boolean connects) {
    SSLContext context = tls;
    return context == null ? null : TlsSettings.engine(context, connects);
  }
}
