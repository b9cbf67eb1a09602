package dev.tutti.store.tcp;

import dev.tutti.store.JobToken;
import java.io.IOException;

/** Proves the job's token on a connection with a store server, on the client's side. */
final class TokenHandshake {
  /*
   * The client asks with CHALLENGE and a nonce, receives the server's nonce, answers with PROVE and
   * its proof, and receives the server's proof. The client proves first, so that a server reveals
   * nothing from which a token could be guessed to a client that does not have it. These are the
   * first requests on a connection. Until they succeed, a server with a token accepts no others
   * (TokenGate).
   */
  private TokenHandshake() {}

  /** Runs the handshake. */
  static void run(TcpConnection connection, JobToken token, long deadline) throws IOException {
    byte[] own = JobToken.nonce();
    connection.out.putByte((byte) Wire.CHALLENGE);
    connection.out.putRaw(own);
    byte[] theirs = challenge(connection, deadline);
    connection.out.putByte((byte) Wire.PROVE);
    connection.out.putRaw(token.proof(Wire.CLIENT_PROOF, own, theirs));
    connection.send(deadline);
    if (connection.readByte(deadline) != Wire.TOKEN_OK) {
      throw new TokenException(
          "its token differs from this process's; " + TokenException.SAME, false);
    }
    byte[] proof = connection.readBytes(JobToken.PROOF_BYTES, deadline);
    if (!token.isProof(proof, Wire.SERVER_PROOF, own, theirs)) {
      throw new TokenException(
          "it does not prove that it has the same token; " + TokenException.SAME, false);
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
          ("it closed the connection when asked for a token, so it has none or is a PyTorch store"
                  + " server, which does not support tokens (%s); %s")
              .formatted(e.getMessage(), TokenException.SAME),
          true);
    }
    if (answer != Wire.TOKEN_OK) {
      throw new TokenException(
          "it has no token, but this process has one; " + TokenException.SAME, false);
    }
    return connection.readBytes(JobToken.NONCE_BYTES, deadline);
  }
}
