package dev.tutti.gloo.transport;

import dev.tutti.store.JobToken;
import dev.tutti.store.net.LimitedLog;
import dev.tutti.store.net.TokenExchange;
import dev.tutti.tls.TlsChannel;
import dev.tutti.tls.TlsFailures;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/**
 * Admits a new connection once the peer has proved its identity. All methods require the
 * transport's lock.
 */
final class PeerAuthentication implements Handler {
  /*
   * A stranger may know the greeting. A refused connection therefore takes nothing from the rank it
   * claimed to be, which may still connect. The rank that initiated the connection, however, has
   * the number of the peer, and gives up.
   */
  private static final long MOST_IGNORED = 1 << 20;

  private final Pairs pairs;
  private final Pair pair;
  private final SocketChannel socket;
  private final SelectionKey key;
  private final boolean connects;
  private final @Nullable TlsChannel tls;
  private final ByteChannel wire;
  private final TokenExchange exchange;
  private boolean agreed;

  PeerAuthentication(
      Pairs pairs, Pair pair, SocketChannel socket, SelectionKey key, boolean connects) {
    this.pairs = pairs;
    this.pair = pair;
    this.socket = socket;
    this.key = key;
    this.connects = connects;
    SSLEngine engine = pairs.protection.engine(connects);
    TlsChannel secured = engine == null ? null : new TlsChannel(socket, engine);
    this.tls = secured;
    this.wire = secured == null ? socket : secured;
    this.agreed = secured == null;
    this.exchange =
        new TokenExchange(
            "tutti gloo",
            pairs.protection.token(),
            connects,
            pairs.context.group,
            pairs.context.rank,
            pair.rank);
  }

  /** Begins the authentication. */
  void start() {
    key.attach(this);
    advance();
  }

  @Override
  public void ready(SelectionKey ready) {
    advance();
  }

  private void advance() {
    TlsChannel secured = tls;
    try {
      if (secured != null) {
        secured.flush();
        agreed = secured.handshake();
      }
      if (agreed && exchange.advance(wire)) {
        pairs.admitted(this, pair, socket, secured, key);
        return;
      }
      // What has come is not read before all is sent, and would be found again and again.
      boolean unsent = (agreed && exchange.hasUnsent()) || (secured != null && secured.hasUnsent());
      key.interestOps(unsent ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    } catch (IOException e) {
      refuse(e);
    }
  }

  private void refuse(IOException e) {
    boolean byTls = !agreed || e instanceof SSLException || !pairs.protection.token().isSet();
    String why =
        byTls
            ? refusal(e)
            : TlsFailures.text(e)
                + "; "
                + JobToken.SETTING.name()
                + " must be the same for all ranks of a job";
    pairs.refused(this, pair, connects, why, e);
  }

  /** Returns which side refused the other, and what to check. */
  private String refusal(IOException e) {
    String self = "rank " + pairs.context.rank;
    String peer = "rank " + pair.rank;
    if (!(e instanceof SSLException)) {
      return TlsFailures.text(e) + "; " + check("both ranks", "both ranks");
    }
    boolean byPeer = TlsFailures.isOfPeer(e);
    return (byPeer ? peer : self)
        + " refused "
        + (byPeer ? self : peer)
        + ": "
        + TlsFailures.text(e)
        + "; "
        + (byPeer ? check(self, peer) : check(peer, self));
  }

  private static String check(String shows, String trusts) {
    return "check %s of %s and %s of %s"
        .formatted(TlsSettings.CERTIFICATE.name(), shows, TlsSettings.AUTHORITIES.name(), trusts);
  }

  /** Gives up the connection in favor of others that wait. */
  void giveUp() {
    pairs.context.log.warnOfStranger(
        "silent as rank " + pair.rank,
        host(),
        "closed a connection that claimed to be from rank "
            + pair.rank
            + ": it did not authenticate while others waited");
    close();
  }

  /** Ends the connection, once the peer has read why if it was the one that connected. */
  void end(Set<EndingConnection> refused) {
    if (connects) {
      close();
    } else {
      new EndingConnection(
              pairs.context, pair.rank, socket, tls, ByteBuffer.allocate(0), MOST_IGNORED, refused)
          .start(key);
    }
  }

  /** Returns the host that connected. */
  String host() {
    return LimitedLog.addressOf(socket);
  }

  /** Closes the connection. */
  void close() {
    Connection.closeGently(pairs.context, socket, tls, pair.rank);
  }
}
