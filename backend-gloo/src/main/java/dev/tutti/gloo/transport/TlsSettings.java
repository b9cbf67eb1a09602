package dev.tutti.gloo.transport;

import dev.tutti.Setting;
import dev.tutti.Settings;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.Map;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/** Reads the certificates and the key of a rank; the files are PEM. */
public final class TlsSettings {
  /** Says whether ranks encrypt what goes between them. */
  public static final Setting<Boolean> ENABLED =
      Setting.flag(
          "TUTTI_GLOO_TLS",
          false,
          "ranks of Tutti show certificates to each other and encrypt what goes between them; same"
              + " on all ranks");

  /** Names the file of this rank's certificate; the name is Gloo's. */
  public static final Setting<String> CERTIFICATE =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT",
          "",
          "PEM file: this rank's certificate, and after it those up to the authority");

  /** Names the file of its key; the name is Gloo's. */
  public static final Setting<String> KEY =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY",
          "",
          "PEM file: the private key of this rank's certificate, PKCS#8, not encrypted");

  /** Names the file of those whom it trusts; the name is Gloo's. */
  public static final Setting<String> AUTHORITIES =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE",
          "",
          "PEM file: the authorities that the certificates of all ranks must come from");

  private static final Map<String, String> SIGNATURES =
      Map.of("EC", "SHA256withECDSA", "RSA", "SHA256withRSA", "EdDSA", "EdDSA");

  /** Is the only version of TLS in use. */
  static final String PROTOCOL = "TLSv1.3";

  private TlsSettings() {}

  /** Returns all of them, for the listing of {@code tutti doctor}. */
  public static List<Setting<?>> all() {
    return List.of(ENABLED, CERTIFICATE, KEY, AUTHORITIES);
  }

  /**
   * Says how connections are encrypted, or why they cannot be.
   *
   * @param settings all settings
   */
  public static String describe(Settings settings) {
    if (!settings.get(ENABLED)) {
      return "not encrypted (to encrypt what goes between ranks: " + ENABLED.name() + ")";
    }
    try {
      load(settings);
      X509Certificate own = read(settings, CERTIFICATE, PemFile::certificates).get(0);
      return "encrypted between ranks, as "
          + own.getSubjectX500Principal()
          + ", until "
          + own.getNotAfter().toInstant();
    } catch (IllegalArgumentException e) {
      return "cannot be encrypted: " + e.getMessage();
    }
  }

  /**
   * Reads the files, if ranks are to encrypt.
   *
   * @param settings all settings
   * @return makes engines; null if ranks do not encrypt
   * @throws IllegalArgumentException naming the setting, its file and what is wrong with it
   */
  static @Nullable SSLContext load(Settings settings) {
    if (!settings.get(ENABLED)) {
      return null;
    }
    List<X509Certificate> authorities = read(settings, AUTHORITIES, PemFile::certificates);
    List<X509Certificate> chain =
        read(
            settings,
            CERTIFICATE,
            file -> {
              List<X509Certificate> found = PemFile.certificates(file);
              found.get(0).checkValidity();
              return found;
            });
    return read(
        settings,
        KEY,
        file -> {
          PublicKey ours = chain.get(0).getPublicKey();
          PrivateKey key = PemFile.key(file, ours.getAlgorithm());
          requirePair(key, ours);
          return context(chain, key, authorities);
        });
  }

  /** Finds out at once what a peer would have to tell otherwise. */
  private static void requirePair(PrivateKey key, PublicKey ours) throws GeneralSecurityException {
    String algorithm = SIGNATURES.get(ours.getAlgorithm());
    if (algorithm != null) {
      Signature signature = Signature.getInstance(algorithm);
      signature.initSign(key);
      byte[] signed = signature.sign();
      signature.initVerify(ours);
      if (!signature.verify(signed)) {
        throw new InvalidKeyException("the key is not that of the certificate");
      }
    }
  }

  /**
   * Makes what engines come from.
   *
   * @param chain certificate of this rank, then those up to the authority
   * @param key of the first
   * @param authorities whom this rank trusts
   * @throws GeneralSecurityException if the parts do not fit
   */
  static SSLContext context(
      List<X509Certificate> chain, PrivateKey key, List<X509Certificate> authorities)
      throws GeneralSecurityException, IOException {
    SSLContext context = SSLContext.getInstance(PROTOCOL);
    context.init(new KeyManager[] {new OneCertificate(chain, key)}, trust(authorities), null);
    return context;
  }

  /** Returns what trusts certificates that come from some authorities. */
  static TrustManager[] trust(List<X509Certificate> authorities)
      throws GeneralSecurityException, IOException {
    KeyStore trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    for (int i = 0; i < authorities.size(); i++) {
      trusted.setCertificateEntry("authority " + i, authorities.get(i));
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(trusted);
    return trust.getTrustManagers();
  }

  /** Makes something of a file. */
  private interface Reader<T> {
    T read(Path file) throws IOException, GeneralSecurityException;
  }

  private static <T> T read(Settings settings, Setting<String> setting, Reader<T> reader) {
    String name = settings.get(setting);
    if (name.isEmpty()) {
      throw new IllegalArgumentException(
          setting.name()
              + " is not set, and "
              + ENABLED.name()
              + " needs it: "
              + setting.description());
    }
    try {
      return reader.read(Path.of(name));
    } catch (IOException | GeneralSecurityException e) {
      throw new IllegalArgumentException(setting.name() + "='" + name + "': " + e, e);
    }
  }
}
