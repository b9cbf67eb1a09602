package dev.tutti.gloo.transport;

import dev.tutti.store.JobToken;
import java.io.IOException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;

/**
 * Lets a new connection in when the peer has proved who it is. All methods need the transport's
 * lock.
 */
final class Admission implements Handler {
  /*
   * A stranger may know what to greet with. So a connection that is refused takes nothing from the
   * rank it said it was, which may still come; the rank that connected knows whom it wanted, and gives
   * up.
   */
  private final Transport transport;
  private final Pair pair;
  private final SocketChannel socket;
  private final SelectionKey key;
  private final boolean connects;
  private final TokenExchange exchange;

  Admission(
      Transport transport, Pair pair, SocketChannel socket, SelectionKey key, boolean connects) {
    this.transport = transport;
    this.pair = pair;
    this.socket = socket;
    this.key = key;
    this.connects = connects;
    this.exchange =
        new TokenExchange(
            transport.protection.token(), connects, transport.group(), transport.rank(), pair.rank);
  }

  /** Begins. */
  void start() {
    key.attach(this);
    advance();
  }

  @Override
  public void ready(SelectionKey ready) {
    advance();
  }

  private void advance() {
    try {
      if (exchange.advance(socket)) {
        transport.pairs.admitted(this, pair, socket, key);
      } else {
        key.interestOps(SelectionKey.OP_READ | (exchange.hasUnsent() ? SelectionKey.OP_WRITE : 0));
      }
    } catch (IOException e) {
      refuse(e);
    }
  }

  private void refuse(IOException e) {
    close();
    transport.pairs.refused(
        this,
        pair,
        connects,
        e.getMessage()
            + "; "
            + JobToken.SETTING.name()
            + " must be the same for all ranks of a job",
        e);
  }

  /** Gives the connection up. */
  void close() {
    Connection.closeGently(transport, socket, pair.rank);
  }
}
