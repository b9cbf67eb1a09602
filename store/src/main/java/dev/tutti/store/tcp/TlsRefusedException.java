package dev.tutti.store.tcp;

import dev.tutti.tls.TlsFailures;
import dev.tutti.tls.TlsSettings;
import java.io.EOFException;
import java.io.IOException;
import javax.net.ssl.SSLException;

/**
 * Thrown when only one side of a store connection uses encryption, or when one side does not trust
 * the other.
 */
final class TlsRefusedException extends RefusedException {
  private static final long serialVersionUID = 1L;

  static final String SAME =
      TlsSettings.ENABLED.name() + " must be the same for the server and all ranks";

  private TlsRefusedException(String message, boolean mayPass, IOException cause) {
    super(message, mayPass, cause);
  }

  /**
   * Creates the exception for a connection that cannot be encrypted, for the side that connected.
   *
   * @param cause the exception of the handshake or of a read
   */
  static TlsRefusedException ofClient(IOException cause) {
    if (cause instanceof EOFException) {
      return new TlsRefusedException(
          "it closed the connection when asked for TLS; "
              + SAME
              + ", and a PyTorch store server does not support TLS",
          true,
          cause);
    }
    return new TlsRefusedException(text(cause, "this process"), false, cause);
  }

  /** Describes why a connection cannot be encrypted, for the server. */
  static String ofServer(SSLException cause) {
    return text(cause, "this server");
  }

  private static String text(IOException cause, String self) {
    String reason = TlsFailures.text(cause);
    return TlsFailures.isOfPeer(cause)
        ? "it refused " + self + ": " + reason + check(self, "the other side")
        : self + " refused it: " + reason + check("the other side", self);
  }

  private static String check(String shows, String trusts) {
    return "; %s, and %s of %s must be issued by an authority in %s of %s"
        .formatted(
            SAME, TlsSettings.CERTIFICATE.name(), shows, TlsSettings.AUTHORITIES.name(), trusts);
  }
}
