package dev.tutti.cuda.share;

import dev.tutti.BackendException;
import dev.tutti.spi.Printable;
import dev.tutti.store.JobToken;
import dev.tutti.store.net.TokenExchange;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The place where a rank accepts links. The ranks introduce themselves through the store, each with
 * its address or with the reason why it has none.
 *
 * @param socket the address of the socket
 * @param encrypted whether the rank encrypts its links
 * @param token the number that senders must know, which only the store tells
 */
record LinkAddress(SocketAddress socket, boolean encrypted, long token) {
  /*
   * An introduction starts with one of these characters. That of a refusal is followed by the
   * reason, any other one by the token in 16 hexadecimal digits and the path, or the port, a space
   * and the host.
   */
  private static final char LOCAL = '+';
  private static final char PLAIN = '@';
  private static final char ENCRYPTED = '#';
  private static final char REFUSAL = '!';

  private static final int TOKEN_END = 17;

  /**
   * Prepares the proof of the job's token on a new link to this address; null if the ranks share a
   * host, where no other user reaches the socket.
   *
   * @param secret the token of the job; there may be none
   * @param connects whether this side connects
   * @param rank this rank
   * @param peer the other rank
   */
  @Nullable TokenExchange proof(JobToken secret, boolean connects, int rank, int peer) {
    String place = HexFormat.of().toHexDigits(token);
    return socket instanceof InetSocketAddress
        ? new TokenExchange("tutti link", secret, connects, place, rank, peer)
        : null;
  }

  String introduction() {
    String hex = HexFormat.of().toHexDigits(token);
    if (socket instanceof InetSocketAddress internet) {
      String host = internet.getAddress().getHostAddress();
      return (encrypted ? ENCRYPTED : PLAIN) + hex + internet.getPort() + " " + host;
    }
    return LOCAL + hex + socket;
  }

  static LinkAddress parse(String introduction) throws IOException {
    char kind = introduction.charAt(0);
    long token = HexFormat.fromHexDigitsToLong(introduction, 1, TOKEN_END);
    String place = introduction.substring(TOKEN_END);
    if (kind == LOCAL) {
      return new LinkAddress(UnixDomainSocketAddress.of(place), false, token);
    }
    int space = place.indexOf(' ');
    int port = Integer.parseInt(place.substring(0, space));
    InetAddress host = InetAddress.getByName(place.substring(space + 1));
    return new LinkAddress(new InetSocketAddress(host, port), kind == ENCRYPTED, token);
  }

  /**
   * Returns the addresses of all ranks; all of them must call this or {@link #refuse} together.
   *
   * @throws BackendException on all ranks, if any of them refuses, or not all of them encrypt
   */
  List<LinkAddress> exchange(StoreExchange exchange, long deadlineNanos) {
    List<String> texts = gather(introduction(), exchange, deadlineNanos);
    int refusing = indexOf(texts, REFUSAL);
    if (refusing >= 0) {
      throw new BackendException(Printable.line(texts.get(refusing).substring(1)));
    }
    int with = indexOf(texts, ENCRYPTED);
    int without = indexOf(texts, PLAIN);
    if (with >= 0 && without >= 0) {
      throw new BackendException(
          "rank %d: %s is set for rank %d, but not for rank %d; it must be the same for all ranks"
              .formatted(exchange.rank(), TlsSettings.ENABLED.name(), with, without));
    }
    List<LinkAddress> all = new ArrayList<>();
    try {
      for (String text : texts) {
        all.add(parse(text));
      }
    } catch (IOException e) {
      throw new BackendException(
          "rank " + exchange.rank() + ": cannot read the address of a peer", e);
    }
    return all;
  }

  /** Makes {@link #exchange} fail on all other ranks, with the given reason. */
  static void refuse(String reason, StoreExchange exchange, long deadlineNanos) {
    List<String> _ = gather(REFUSAL + reason, exchange, deadlineNanos);
  }

  private static List<String> gather(String own, StoreExchange exchange, long deadlineNanos) {
    byte[] bytes = own.getBytes(StandardCharsets.UTF_8);
    return exchange.allGather(bytes, deadlineNanos).stream()
        .map(text -> new String(text, StandardCharsets.UTF_8))
        .toList();
  }

  private static int indexOf(List<String> introductions, char kind) {
    for (int i = 0; i < introductions.size(); i++) {
      if (introductions.get(i).charAt(0) == kind) {
        return i;
      }
    }
    return -1;
  }
}
