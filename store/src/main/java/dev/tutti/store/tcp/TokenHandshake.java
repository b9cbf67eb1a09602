package dev.tutti.store.tcp;

import dev.tutti.store.JobToken;
import dev.tutti.store.table.Arguments;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** Proves the job's token on a connection with a store server, on both sides. */
final class TokenHandshake {
  /*
   * The client asks with CHALLENGE and a nonce, receives the server's nonce, answers with PROVE and
   * its proof, and receives the server's proof. The client proves first, so that a server reveals
   * nothing from which a token could be guessed to a client that does not have it. These are the
   * first requests on a connection. Until they succeed, a server with a token accepts no others.
   */
  private static final String CLIENT = "tutti store client 1";
  private static final String SERVER = "tutti store server 1";
  static final String SAME =
      JobToken.SETTING.name() + " must be the same for the server and all ranks, or unset for all";

  private TokenHandshake() {}

  /** Runs the client's side. */
  static void run(TcpConnection connection, JobToken token, long deadline) throws IOException {
    byte[] own = JobToken.nonce();
    connection.out.putByte((byte) Wire.CHALLENGE);
    connection.out.putRaw(own);
    byte[] theirs = challenge(connection, deadline);
    connection.out.putByte((byte) Wire.PROVE);
    connection.out.putRaw(token.proof(CLIENT, own, theirs));
    connection.send(deadline);
    if (connection.readByte(deadline) != Wire.TOKEN_OK) {
      throw new TokenException("its token differs from this process's; " + SAME, false);
    }
    byte[] proof = connection.readBytes(JobToken.PROOF_BYTES, deadline);
    if (!token.isProof(proof, SERVER, own, theirs)) {
      throw new TokenException("it does not prove that it has the same token; " + SAME, false);
    }
  }

  /** Sends the challenge, and returns the server's nonce. */
  private static byte[] challenge(TcpConnection connection, long deadline) throws IOException {
    byte answer;
    try {
      connection.send(deadline);
      answer = connection.readByte(deadline);
    } catch (DeadlineException | RefusedException e) {
      throw e;
    } catch (IOException e) {
      throw new TokenException(
          "it closed the connection when asked for a token, so it has none or is a PyTorch store"
              + " server, which does not support tokens ("
              + e.getMessage()
              + "); "
              + SAME,
          true);
    }
    if (answer != Wire.TOKEN_OK) {
      throw new TokenException("it has no token, but this process has one; " + SAME, false);
    }
    return connection.readBytes(JobToken.NONCE_BYTES, deadline);
  }

  /** The server's side of one connection; used by the event loop only. */
  static final class Gate {
    private final JobToken token;
    private final SendQueue replies;
    private byte @Nullable [] theirs;
    private byte[] own = Arguments.NO_BYTES;
    private boolean open;

    Gate(JobToken token, SendQueue replies) {
      this.token = token;
      this.replies = replies;
      this.open = !token.isSet();
    }

    /** Lets a query through; without the proof, only the two queries that provide it. */
    void require(int query) throws ProtocolException {
      if (open || query == Wire.CHALLENGE || query == Wire.PROVE) {
        return;
      }
      if (query == Wire.COMPARE_SET) {
        // A Tutti client asks this first. It gets an answer that it can report to its user.
        replies.putBytes(Wire.TOKEN_NEEDED.getBytes(StandardCharsets.US_ASCII));
      }
      throw new ProtocolException("it has not proved that it has this server's token; " + SAME);
    }

    /** Tells whether the token was proved, or none is required. */
    boolean isOpen() {
      return open;
    }

    /** Answers a challenge. */
    void challenge(byte[] nonce) throws ProtocolException {
      if (!token.isSet()) {
        replies.putByte(Wire.TOKEN_REFUSED);
        return;
      }
      if (theirs != null) {
        throw new ProtocolException("it asked for the token twice");
      }
      theirs = nonce;
      own = JobToken.nonce();
      replies.putByte(Wire.TOKEN_OK);
      replies.putRaw(own);
    }

    /** Checks the client's proof and sends this server's proof. */
    void prove(byte[] proof) throws ProtocolException {
      byte[] nonce = theirs;
      if (nonce == null || open) {
        throw new ProtocolException("it sent an unexpected proof of a token");
      }
      if (!token.isProof(proof, CLIENT, nonce, own)) {
        replies.putByte(Wire.TOKEN_REFUSED);
        throw new ProtocolException("its token differs from this server's; " + SAME);
      }
      open = true;
      replies.putByte(Wire.TOKEN_OK);
      replies.putRaw(token.proof(SERVER, nonce, own));
    }
  }
}
