package dev.tutti.tls;

import java.net.Socket;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.List;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedKeyManager;
import org.jspecify.annotations.Nullable;

/**
 * Shows a rank's certificate to every peer, even to one that requests certificates of other
 * authorities, so that the peer can say what it objects to.
 */
final class OneCertificate extends X509ExtendedKeyManager {
  private static final String ALIAS = "own";

  private final X509Certificate[] chain;
  private final PrivateKey key;

  OneCertificate(List<X509Certificate> chain, PrivateKey key) {
    this.chain = chain.toArray(X509Certificate[]::new);
    this.key = key;
  }

  private @Nullable String aliasOf(String... types) {
    return Arrays.asList(types).contains(key.getAlgorithm()) ? ALIAS : null;
  }

  private String @Nullable [] aliasesOf(String type) {
    String alias = aliasOf(type);
    return alias == null ? null : new String[] {alias};
  }

  @Override
  public String @Nullable [] getClientAliases(String type, Principal @Nullable [] issuers) {
    return aliasesOf(type);
  }

  @Override
  public String @Nullable [] getServerAliases(String type, Principal @Nullable [] issuers) {
    return aliasesOf(type);
  }

  @Override
  public @Nullable String chooseClientAlias(
      String[] types, Principal @Nullable [] issuers, @Nullable Socket socket) {
    return aliasOf(types);
  }

  @Override
  public @Nullable String chooseServerAlias(
      String type, Principal @Nullable [] issuers, @Nullable Socket socket) {
    return aliasOf(type);
  }

  @Override
  public @Nullable String chooseEngineClientAlias(
      String[] types, Principal @Nullable [] issuers, @Nullable SSLEngine engine) {
    return aliasOf(types);
  }

  @Override
  public @Nullable String chooseEngineServerAlias(
      String type, Principal @Nullable [] issuers, @Nullable SSLEngine engine) {
    return aliasOf(type);
  }

  @Override
  public X509Certificate[] getCertificateChain(String alias) {
    return chain.clone();
  }

  @Override
  public PrivateKey getPrivateKey(String alias) {
    return key;
  }
}
