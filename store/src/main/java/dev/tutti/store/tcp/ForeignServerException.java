package dev.tutti.store.tcp;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/** Thrown when something other than a store server answers. */
final class ForeignServerException extends IOException {
  private static final long serialVersionUID = 1L;

  /** How the answer of an Aeron store server begins, even to a peer that is not its client. */
  private static final String AERON = "TuttiAer";

  private static final String HTTP = "HTTP/";

  private ForeignServerException(String message) {
    super(message);
  }

  /** Creates the exception of a process that does not use encryption, although the server does. */
  static ForeignServerException ofTls() {
    return new ForeignServerException(
        "the server there uses TLS, but this process does not; " + TlsRefusedException.SAME);
  }

  /**
   * Creates an exception for an unexpected answer.
   *
   * @param first the first 8 bytes of the answer, little-endian, which are not a valid length
   */
  static ForeignServerException of(long first) {
    byte[] bytes =
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(first).array();
    String text = new String(bytes, StandardCharsets.ISO_8859_1);
    if (text.equals(AERON)) {
      return new ForeignServerException(
          "an Aeron store server answers there; set TUTTI_STORE to aeron on this rank too, or on no"
              + " rank");
    }
    if (text.startsWith(HTTP)) {
      return new ForeignServerException("an HTTP server answers there; check MASTER_PORT");
    }
    boolean printable = text.chars().allMatch(c -> c >= ' ' && c < 127);
    return new ForeignServerException(
        "the answer from there begins with "
            + (printable ? "'" + text + "'" : HexFormat.ofDelimiter(" ").formatHex(bytes))
            + ", which is not a store server's; check MASTER_PORT");
  }
}
