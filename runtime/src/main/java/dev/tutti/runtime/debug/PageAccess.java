package dev.tutti.runtime.debug;

import dev.tutti.store.JobToken;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Which clients may read pages: those that present a secret, or, without one, the browser that
 * opens a URL first. Any thread may call its methods.
 */
public final class PageAccess {
  private static final String QUERY = "ticket=";
  private static final String BEARER = "bearer ";
  private static final String BASIC = "basic ";

  /** The secret that clients present; empty if they need a ticket instead. */
  private final String secret;

  private final String cookie;
  private String ticket;

  private PageAccess(String secret, String ticket, String cookie) {
    this.secret = secret;
    this.ticket = ticket;
    this.cookie = cookie;
  }

  /**
   * Admits clients that present the {@link JobToken#debugSecret} of a job.
   *
   * @param token the token of the job; it must be set
   */
  public static PageAccess ofJob(JobToken token) {
    return new PageAccess(token.debugSecret(), "", "");
  }

  /** Admits the browser that first opens a URL with a ticket, and nobody else. */
  public static PageAccess once() {
    return new PageAccess("", random(), random());
  }

  private static String random() {
    byte[] bytes = new byte[32];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** Returns the part of the URL after the path, with the ticket; empty if none is needed. */
  public String query() {
    return secret.isEmpty() ? "?" + QUERY + ticket : "";
  }

  /** Returns what to require in the answer to a client without access. */
  String refusal() {
    return secret.isEmpty()
        ? "open the URL with the ticket, which is valid once\n"
        : "the secret is missing or wrong; 'tutti token debug' prints it\n";
  }

  /**
   * Returns whether a header contains the secret, either as a bearer token or as the password of
   * any user, in a time that does not depend on the secret.
   */
  boolean accepts(String authorization) {
    String lower = authorization.toLowerCase(Locale.ROOT);
    if (lower.startsWith(BEARER)) {
      return isSecret(authorization.substring(BEARER.length()).strip());
    }
    if (lower.startsWith(BASIC)) {
      try {
        byte[] both = Base64.getDecoder().decode(authorization.substring(BASIC.length()).strip());
        String text = new String(both, StandardCharsets.UTF_8);
        return isSecret(text.substring(text.indexOf(':') + 1));
      } catch (IllegalArgumentException e) {
        return false;
      }
    }
    return false;
  }

  private boolean isSecret(String text) {
    return !secret.isEmpty() && isEqual(text, secret);
  }

  /** Returns whether requests carry the cookie of the browser that presented the ticket. */
  boolean accepts(List<String> cookies, int port) {
    return secret.isEmpty()
        && cookies.stream()
            .flatMap(header -> Arrays.stream(header.split(";", -1)))
            .anyMatch(each -> isEqual(each.strip(), cookieName(port) + cookie));
  }

  /** Takes a ticket, once; returns the cookie to set, or null if it is wrong or was used before. */
  synchronized @Nullable String takeTicket(@Nullable String query, int port) {
    if (ticket.isEmpty() || query == null || !isEqual(query, QUERY + ticket)) {
      return null;
    }
    ticket = "";
    return cookieName(port) + cookie + "; HttpOnly; SameSite=Strict; Path=/";
  }

  /** Returns the start of a cookie; browsers send those of all ports of a host. */
  private static String cookieName(int port) {
    return "tutti-" + port + "=";
  }

  private static boolean isEqual(String one, String other) {
    return MessageDigest.isEqual(
        one.getBytes(StandardCharsets.UTF_8), other.getBytes(StandardCharsets.UTF_8));
  }
}
