package dev.tutti.runtime.debug;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Checks whether a request presents the secret of the job's debug servers, in a time that does not
 * depend on the secret.
 */
final class TokenCheck {
  private static final String BEARER = "bearer ";
  private static final String BASIC = "basic ";

  private final byte[] secret;

  /**
   * Creates a check.
   *
   * @param token the token of the job; it must be set
   */
  TokenCheck(JobToken token) {
    this.secret = token.debugSecret().getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Returns whether a header contains the secret, either as a bearer token or as the password of
   * any user.
   *
   * @param authorization the value of the header, or null
   */
  boolean accepts(@Nullable String authorization) {
    if (authorization == null) {
      return false;
    }
    String lower = authorization.toLowerCase(Locale.ROOT);
    try {
      if (lower.startsWith(BEARER)) {
        return isSecret(authorization.substring(BEARER.length()).strip());
      }
      if (lower.startsWith(BASIC)) {
        byte[] decoded =
            Base64.getDecoder().decode(authorization.substring(BASIC.length()).strip());
        String both = new String(decoded, StandardCharsets.UTF_8);
        return isSecret(both.substring(both.indexOf(':') + 1));
      }
    } catch (IllegalArgumentException e) {
      // Not base64.
      return false;
    }
    return false;
  }

  private boolean isSecret(String text) {
    return MessageDigest.isEqual(secret, text.getBytes(StandardCharsets.UTF_8));
  }
}
