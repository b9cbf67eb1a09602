package dev.tutti.checkpoint.format;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The SHA-256 of bytes, as text. */
public final class Sha256 {
  private Sha256() {}

  /** Returns the digest in 64 hexadecimal digits. */
  public static String of(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("each Java platform has SHA-256", e);
    }
  }
}
