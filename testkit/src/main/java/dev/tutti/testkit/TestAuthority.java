package dev.tutti.testkit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;

/** A certificate authority for tests. */
public final class TestAuthority {
  private static final int SEQUENCE = 0x30;
  private static final byte[] COMMON_NAME = HexFormat.of().parseHex("0603550403");

  /** The extension of a certificate authority: critical basic constraints with "may issue". */
  private static final byte[] MAY_ISSUE =
      der(SEQUENCE, HexFormat.of().parseHex("0603551d130101ff040530030101ff"));

  private static final Duration VALIDITY = Duration.ofDays(1);

  /** What keys and signatures are like. */
  public enum Kind {
    /** ECDSA on the curve P-256, whose signatures differ in length. */
    P256("EC", "secp256r1", "SHA256withECDSA", "06082a8648ce3d040302"),

    /** Ed25519, whose signatures all have the same length, as simulated networks need it. */
    ED25519("Ed25519", "", "Ed25519", "06032b6570");

    private final String algorithm;
    private final String curve;
    private final String signature;
    private final String identifier;

    Kind(String algorithm, String curve, String signature, String identifier) {
      this.algorithm = algorithm;
      this.curve = curve;
      this.signature = signature;
      this.identifier = identifier;
    }

    private byte[] identifier() {
      return der(SEQUENCE, HexFormat.of().parseHex(identifier));
    }
  }

  private final Path folder;
  private final String name;
  private final Kind kind;
  private final KeyPair keys;

  /**
   * Creates an authority with keys on the curve P-256, and writes its certificate.
   *
   * @param folder the folder for all files
   * @param name the name of the authority
   */
  public TestAuthority(Path folder, String name) throws GeneralSecurityException, IOException {
    this(folder, name, Kind.P256);
  }

  /**
   * Creates an authority and writes its certificate.
   *
   * @param folder the folder for all files
   * @param name the name of the authority
   * @param kind the kind of all keys
   */
  public TestAuthority(Path folder, String name, Kind kind)
      throws GeneralSecurityException, IOException {
    this.folder = folder;
    this.name = name;
    this.kind = kind;
    this.keys = newKeys();
    Instant end = Instant.now().plus(VALIDITY);
    write(name + ".pem", "CERTIFICATE", certificate(name, keys, end, MAY_ISSUE));
  }

  /** Returns the file with the authority's certificate. */
  public Path certificate() {
    return folder.resolve(name + ".pem");
  }

  /** Issues a valid certificate, and returns its files. */
  public Issued issue(String subject) throws GeneralSecurityException, IOException {
    return issue(subject, Instant.now().plus(VALIDITY));
  }

  /** Issues a certificate that is valid until the given time, and returns its files. */
  public Issued issue(String subject, Instant end) throws GeneralSecurityException, IOException {
    KeyPair own = newKeys();
    return new Issued(
        write(subject + ".pem", "CERTIFICATE", certificate(subject, own, end, new byte[0])),
        write(subject + ".key", "PRIVATE KEY", own.getPrivate().getEncoded()));
  }

  /** The files of a certificate and its key. */
  public record Issued(Path certificate, Path key) {
    /**
     * Returns the settings of a process that has this certificate.
     *
     * @param enabling the name of the setting that enables TLS
     * @param trusted the certificate of the authority that the process trusts
     */
    public Map<String, String> settings(String enabling, Path trusted) {
      return Map.of(
          enabling,
          "true",
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT",
          certificate.toString(),
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY",
          key.toString(),
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE",
          trusted.toString());
    }
  }

  private KeyPair newKeys() throws GeneralSecurityException {
    KeyPairGenerator generator = KeyPairGenerator.getInstance(kind.algorithm);
    if (!kind.curve.isEmpty()) {
      generator.initialize(new ECGenParameterSpec(kind.curve));
    }
    return generator.generateKeyPair();
  }

  private byte[] certificate(String subject, KeyPair own, Instant end, byte[] extension)
      throws GeneralSecurityException {
    byte[] body =
        der(
            SEQUENCE,
            der(0xa0, integer(BigInteger.TWO)),
            integer(BigInteger.valueOf(System.nanoTime())),
            kind.identifier(),
            distinguished(name),
            der(SEQUENCE, time(end.minus(VALIDITY.multipliedBy(2))), time(end)),
            distinguished(subject),
            own.getPublic().getEncoded(),
            extension.length == 0 ? extension : der(0xa3, der(SEQUENCE, extension)));
    Signature signature = Signature.getInstance(kind.signature);
    signature.initSign(keys.getPrivate());
    signature.update(body);
    return der(SEQUENCE, body, kind.identifier(), der(0x03, new byte[1], signature.sign()));
  }

  private static byte[] distinguished(String name) {
    byte[] text = der(0x0c, name.getBytes(StandardCharsets.UTF_8));
    return der(SEQUENCE, der(0x31, der(SEQUENCE, COMMON_NAME, text)));
  }

  private static byte[] time(Instant time) {
    String text =
        DateTimeFormatter.ofPattern("yyyyMMddHHmmss'Z'").withZone(ZoneOffset.UTC).format(time);
    return der(0x18, text.getBytes(StandardCharsets.US_ASCII));
  }

  private static byte[] integer(BigInteger value) {
    return der(0x02, value.toByteArray());
  }

  private static byte[] der(int tag, byte[]... parts) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      content.writeBytes(part);
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(tag);
    int length = content.size();
    if (length >= 0x100) {
      out.write(0x82);
      out.write(length >> 8);
    } else if (length >= 0x80) {
      out.write(0x81);
    }
    out.write(length);
    out.writeBytes(content.toByteArray());
    return out.toByteArray();
  }

  private Path write(String file, String kind, byte[] bytes) throws IOException {
    String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
    return Files.writeString(
        folder.resolve(file),
        "-----BEGIN " + kind + "-----\n" + base64 + "\n-----END " + kind + "-----\n");
  }
}
