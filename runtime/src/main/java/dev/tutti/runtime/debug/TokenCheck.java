package dev.tutti.runtime.debug;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Tells whether a request presents the job's token, in a time that does not depend on the token.
 */
final class TokenCheck {
  private static final String BEARER = "bearer ";
  private static final String BASIC = "basic ";

  private final JobToken token;

  /**
   * Creates a check.
   *
   * @param token the token; it must be set
   */
  TokenCheck(JobToken token) {
    this.token = token;
  }

  /**
   * Tells whether a header contains the token, either as a bearer token or as the password of any
   * user.
   *
   * @param authorization the value of the header, or null
   */
  boolean accepts(@Nullable String authorization) {
    if (authorization == null || !token.isSet()) {
      return false;
    }
    String lower = authorization.toLowerCase(Locale.ROOT);
    try {
      if (lower.startsWith(BEARER)) {
        return isToken(authorization.substring(BEARER.length()).strip());
      }
      if (lower.startsWith(BASIC)) {
        byte[] decoded =
            Base64.getDecoder().decode(authorization.substring(BASIC.length()).strip());
        String both = new String(decoded, StandardCharsets.UTF_8);
        return isToken(both.substring(both.indexOf(':') + 1));
      }
    } catch (IllegalArgumentException e) {
      // Not base64, or too short for a token.
      return false;
    }
    return false;
  }

  private boolean isToken(String text) {
    return token.equals(JobToken.of(text));
  }
}
