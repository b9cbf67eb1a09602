package dev.tutti.tls;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Reads certificates and keys from PEM files (RFC 7468). */
public final class PemFile {
  private static final String KEY_BEGIN = "-----BEGIN PRIVATE KEY-----";
  private static final String KEY_END = "-----END PRIVATE KEY-----";

  private PemFile() {}

  /**
   * Reads all certificates of a file.
   *
   * @param file a file with at least one certificate
   * @throws IOException if the file cannot be read
   * @throws GeneralSecurityException if the file has no certificates
   */
  public static List<X509Certificate> certificates(Path file)
      throws IOException, GeneralSecurityException {
    List<X509Certificate> found = new ArrayList<>();
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    for (Certificate certificate :
        factory.generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)))) {
      found.add((X509Certificate) certificate);
    }
    if (found.isEmpty()) {
      throw new CertificateException("the file contains no certificate");
    }
    return found;
  }

  /**
   * Reads a private key.
   *
   * @param file a file with an unencrypted PKCS#8 key
   * @param algorithm the algorithm of the key
   * @throws IOException if the file cannot be read
   * @throws GeneralSecurityException if the file has no such key
   */
  public static PrivateKey key(Path file, String algorithm)
      throws IOException, GeneralSecurityException {
    String text = Files.readString(file, StandardCharsets.ISO_8859_1);
    int begin = text.indexOf(KEY_BEGIN);
    int end = text.indexOf(KEY_END);
    if (begin < 0 || end < begin) {
      throw new InvalidKeySpecException(
          "the file contains no '%s'; 'openssl pkcs8 -topk8 -nocrypt' converts other kinds of keys"
              .formatted(KEY_BEGIN));
    }
    try {
      byte[] bytes =
          Base64.getMimeDecoder().decode(text.substring(begin + KEY_BEGIN.length(), end));
      return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(bytes));
    } catch (IllegalArgumentException | InvalidKeySpecException e) {
      throw new InvalidKeySpecException(
          "the file's key is not a valid key for %s, the algorithm of the certificate"
              .formatted(algorithm),
          e);
    }
  }
}
