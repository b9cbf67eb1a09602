package dev.tutti.tls;

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
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/** Reads the certificates and the key of a process from PEM files. */
public final class TlsSettings {
  /** Whether all sockets of a job are encrypted. */
  public static final Setting<Boolean> ENABLED =
      Setting.flag(
          "TUTTI_TLS",
          false,
          "Tutti's processes authenticate each other by certificates and encrypt their socket"
              + " traffic: the TCP store, gloo, and the links of nccl; must be the same for all");

  /** Whether ranks on gloo encrypt the traffic between them, even without {@link #ENABLED}. */
  public static final Setting<Boolean> GLOO =
      Setting.flag(
          "TUTTI_GLOO_TLS",
          false,
          "like TUTTI_TLS, but only for gloo traffic between ranks; must be the same on all ranks");

  /** The file of this rank's certificate; the setting's name is Gloo's. */
  public static final Setting<String> CERTIFICATE =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT",
          "",
          "PEM file: this rank's certificate, followed by those up to the authority");

  /** The file of its key; the setting's name is Gloo's. */
  public static final Setting<String> KEY =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY",
          "",
          "PEM file: the private key of this rank's certificate, PKCS#8, not encrypted");

  /** The file of the authorities that it trusts; the setting's name is Gloo's. */
  public static final Setting<String> AUTHORITIES =
      Setting.text(
          "GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE",
          "",
          "PEM file: the authorities that issue the certificates of all ranks");

  private static final Map<String, String> SIGNATURES =
      Map.of("EC", "SHA256withECDSA", "RSA", "SHA256withRSA", "EdDSA", "EdDSA");

  /** The only version of TLS in use. */
  public static final String PROTOCOL = "TLSv1.3";

  private TlsSettings() {}

  /** Returns all settings, for the listing of {@code tutti doctor}. */
  public static List<Setting<?>> all() {
    return List.of(ENABLED, GLOO, CERTIFICATE, KEY, AUTHORITIES);
  }

  /**
   * Describes how connections of ranks on gloo are encrypted, or why they cannot be.
   *
   * @param settings all settings
   */
  public static String describe(Settings settings) {
    Setting<Boolean> by = settings.get(ENABLED) ? ENABLED : GLOO;
    try {
      if (load(settings, by) == null) {
        return "not encrypted (to encrypt traffic between ranks, set " + ENABLED.name() + ")";
      }
      X509Certificate own = read(settings, by, CERTIFICATE, PemFile::certificates).get(0);
      return "encrypted between ranks, as %s, until %s"
          .formatted(own.getSubjectX500Principal(), own.getNotAfter().toInstant());
    } catch (IllegalArgumentException e) {
      return "cannot be encrypted: " + e.getMessage();
    }
  }

  /**
   * Reads the files if all sockets are to be encrypted.
   *
   * @param settings all settings
   * @return the context that creates engines; null if sockets are not encrypted
   * @throws IllegalArgumentException naming the setting, its file and what is wrong with it
   */
  public static @Nullable SSLContext load(Settings settings) {
    return load(settings, ENABLED);
  }

  /**
   * Reads the files if ranks on gloo are to encrypt.
   *
   * @param settings all settings
   * @return the context that creates engines; null if ranks do not encrypt
   * @throws IllegalArgumentException naming the setting, its file and what is wrong with it
   */
  public static @Nullable SSLContext loadForGloo(Settings settings) {
    return load(settings, settings.get(ENABLED) ? ENABLED : GLOO);
  }

  /**
   * Creates the engine for one connection.
   *
   * @param context the context of this process
   * @param client whether this side speaks first; both sides show certificates
   */
  public static SSLEngine engine(SSLContext context, boolean client) {
    SSLEngine engine = context.createSSLEngine();
    engine.setUseClientMode(client);
    engine.setEnabledProtocols(new String[] {PROTOCOL});
    if (!client) {
      engine.setNeedClientAuth(true);
    }
    return engine;
  }

  private static @Nullable SSLContext load(Settings settings, Setting<Boolean> by) {
    if (!settings.get(by)) {
      return null;
    }
    List<X509Certificate> authorities = read(settings, by, AUTHORITIES, PemFile::certificates);
    List<X509Certificate> chain =
        read(
            settings,
            by,
            CERTIFICATE,
            file -> {
              List<X509Certificate> found = PemFile.certificates(file);
              found.get(0).checkValidity();
              return found;
            });
    return read(
        settings,
        by,
        KEY,
        file -> {
          PublicKey ours = chain.get(0).getPublicKey();
          PrivateKey key = PemFile.key(file, ours.getAlgorithm());
          requirePair(key, ours);
          return context(chain, key, authorities);
        });
  }

  /** Detects at once a mismatch that otherwise only a peer would report. */
  private static void requirePair(PrivateKey key, PublicKey ours) throws GeneralSecurityException {
    String algorithm = SIGNATURES.get(ours.getAlgorithm());
    if (algorithm != null) {
      Signature signature = Signature.getInstance(algorithm);
      signature.initSign(key);
      byte[] signed = signature.sign();
      signature.initVerify(ours);
      if (!signature.verify(signed)) {
        throw new InvalidKeyException("the key does not belong to the certificate");
      }
    }
  }

  /**
   * Creates a context, from which engines are created.
   *
   * @param chain the certificate of this rank, followed by those up to the authority
   * @param key the key of the first certificate
   * @param authorities the authorities that this rank trusts
   * @throws GeneralSecurityException if the parts do not match
   */
  public static SSLContext context(
      List<X509Certificate> chain, PrivateKey key, List<X509Certificate> authorities)
      throws GeneralSecurityException, IOException {
    SSLContext context = SSLContext.getInstance(PROTOCOL);
    context.init(new KeyManager[] {new OneCertificate(chain, key)}, trust(authorities), null);
    return context;
  }

  /** Returns the managers that trust certificates of the given authorities. */
  public static TrustManager[] trust(List<X509Certificate> authorities)
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

  /** Reads an object from a file. */
  private interface Reader<T> {
    T read(Path file) throws IOException, GeneralSecurityException;
  }

  private static <T> T read(
      Settings settings, Setting<Boolean> by, Setting<String> setting, Reader<T> reader) {
    String name = settings.get(setting);
    if (name.isEmpty()) {
      throw new IllegalArgumentException(
          "%s is not set, and %s requires it: %s"
              .formatted(setting.name(), by.name(), setting.description()));
    }
    try {
      return reader.read(Path.of(name));
    } catch (IOException | GeneralSecurityException e) {
      throw new IllegalArgumentException(setting.name() + "='" + name + "': " + e, e);
    }
  }
}
