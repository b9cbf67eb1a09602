package dev.tutti.store.tcp;

import dev.tutti.store.JobToken;
import dev.tutti.store.table.Arguments;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/** The server's side of a {@link TokenHandshake}; used by the event loop only. */
final class TokenGate {
  private final JobToken token;
  private final SendQueue replies;
  private byte @Nullable [] theirs;
  private byte[] own = Arguments.NO_BYTES;
  private boolean open;

  TokenGate(JobToken token, SendQueue replies) {
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
      // A Tutti client sends this first. It gets an answer that it can report to its user.
      replies.putBytes(Wire.TOKEN_NEEDED.getBytes(StandardCharsets.US_ASCII));
    }
    throw new ProtocolException(
        "it has not proved that it has this server's token; " + TokenException.SAME);
  }

  /** Returns whether the token was proved, or none is required. */
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
    if (!token.isProof(proof, Wire.CLIENT_PROOF, nonce, own)) {
      replies.putByte(Wire.TOKEN_REFUSED);
      throw new ProtocolException("its token differs from this server's; " + TokenException.SAME);
    }
    open = true;
    replies.putByte(Wire.TOKEN_OK);
    replies.putRaw(token.proof(Wire.SERVER_PROOF, nonce, own));
  }
}
