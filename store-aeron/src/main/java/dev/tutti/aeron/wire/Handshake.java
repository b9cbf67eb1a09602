package dev.tutti.aeron.wire;

import dev.tutti.store.JobToken;
import java.io.EOFException;
import java.io.IOException;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** How client and server agree on a session, on both sides of their control connection. */
public final class Handshake {
  /*
   *   client  MAGIC, VERSION, whether it has a token [nonce]
   *   server  MAGIC, VERSION, answer [nonce]
   *   client  [proof]
   *   server  [answer, proof]                    nothing of the job is sent before this
   *   server  streams, session, bell, folder of its driver, its own folder and the proof there
   *   client  IPC and its bell; or UDP and where it listens
   *   server  READY; or FAILED and why
   *
   * From then on, the server serves the session. GOODBYE is sent by a server that closes, or by a
   * client that closes; the latter withdraws all of the client's wills, including those whose
   * requests are still in flight.
   */
  private static final byte VERSION = 2;

  public static final int IPC = 1;
  public static final int UDP = 2;
  public static final int OK = 1;
  public static final int FAILED = 2;
  public static final int GOODBYE = 3;

  private static final int TOKEN_NEEDED = 4;
  private static final int TOKEN_UNKNOWN = 5;
  private static final byte[] MAGIC = "TuttiAer".getBytes(StandardCharsets.US_ASCII);
  private static final String CLIENT = "tutti aeron client 1";
  private static final String SERVER = "tutti aeron server 1";
  private static final String SAME =
      JobToken.SETTING.name() + " must be the same for the server and all ranks, or unset for all";

  private Handshake() {}

  /**
   * The parameters of a session.
   *
   * @param requestStream the number of the stream to the server
   * @param replyStream the number of the stream to the client
   * @param session the number that both sides put into each frame
   * @param bell the number of the server's {@code Doorbell}
   * @param driver the folder of the server's driver
   * @param folder the server's own folder
   * @param folderProof the content of the proof file in that folder
   */
  @SuppressWarnings("ArrayRecordComponent")
  public record Session(
      int requestStream,
      int replyStream,
      long session,
      int bell,
      String driver,
      String folder,
      byte[] folderProof) {}

  /** Thrown when the server or client does not have the same token. */
  public static final class TokenException extends IOException {
    private static final long serialVersionUID = 1L;

    TokenException(String message) {
      super(message);
    }
  }

  /** Runs the client's side up to the session. */
  public static Session ask(Control control, JobToken token, long deadline) throws IOException {
    byte[] own = JobToken.nonce();
    control.putRaw(MAGIC);
    control.putByte(VERSION);
    control.putByte(token.isSet() ? 1 : 0);
    if (token.isSet()) {
      control.putRaw(own);
    }
    control.send();
    try {
      requireMagic(control, deadline);
    } catch (EOFException | SocketException e) {
      throw new IOException(
          "it closed the connection instead of answering, as a store of another kind would;"
              + " TUTTI_STORE must be the same for all ranks and their launcher",
          e);
    }
    int answer = control.readByte(deadline);
    if (answer == TOKEN_NEEDED) {
      throw new TokenException("it requires a token, but this process has none; " + SAME);
    }
    if (answer == TOKEN_UNKNOWN) {
      throw new TokenException("it has no token, but this process has one; " + SAME);
    }
    if (token.isSet()) {
      byte[] theirs = control.readRaw(JobToken.NONCE_BYTES, deadline);
      control.putRaw(token.proof(CLIENT, own, theirs));
      control.send();
      if (control.readByte(deadline) != OK) {
        throw new TokenException("its token differs from this process's; " + SAME);
      }
      byte[] proof = control.readRaw(JobToken.PROOF_BYTES, deadline);
      if (!token.isProof(proof, SERVER, own, theirs)) {
        throw new TokenException("it did not prove that it has the same token; " + SAME);
      }
    }
    int requestStream = control.readInt(deadline);
    int replyStream = control.readInt(deadline);
    long session = control.readLong(deadline);
    int bell = control.readInt(deadline);
    String driver = control.readText(deadline);
    String folder = control.readText(deadline);
    int length = control.readByte(deadline);
    return new Session(
        requestStream,
        replyStream,
        session,
        bell,
        driver,
        folder,
        control.readRaw(Math.max(0, length), deadline));
  }

  /** Runs the server's side up to the proof of the token. */
  public static void admit(Control control, JobToken token, long deadline) throws IOException {
    try {
      requireMagic(control, deadline);
    } catch (MalformedMessageException e) {
      // Sends a client of another kind of store what it found.
      control.putRaw(MAGIC);
      control.send();
      throw e;
    }
    boolean has = control.readByte(deadline) != 0;
    byte[] theirs = has ? control.readRaw(JobToken.NONCE_BYTES, deadline) : new byte[0];
    control.putRaw(MAGIC);
    control.putByte(VERSION);
    if (has != token.isSet()) {
      control.putByte(has ? TOKEN_UNKNOWN : TOKEN_NEEDED);
      control.send();
      throw new TokenException(
          (has ? "it has a token, but this server has none; " : "it has no token; ") + SAME);
    }
    control.putByte(OK);
    if (has) {
      byte[] own = JobToken.nonce();
      control.putRaw(own);
      control.send();
      byte[] proof = control.readRaw(JobToken.PROOF_BYTES, deadline);
      if (!token.isProof(proof, CLIENT, theirs, own)) {
        control.putByte(FAILED);
        control.send();
        throw new TokenException("its token differs from this server's; " + SAME);
      }
      control.putByte(OK);
      control.putRaw(token.proof(SERVER, theirs, own));
    }
  }

  /** Sends the client its session. */
  public static void tell(Control control, Session session) throws IOException {
    control.putInt(session.requestStream());
    control.putInt(session.replyStream());
    control.putLong(session.session());
    control.putInt(session.bell());
    control.putText(session.driver());
    control.putText(session.folder());
    control.putByte(session.folderProof().length);
    control.putRaw(session.folderProof());
    control.send();
  }

  private static void requireMagic(Control control, long deadline) throws IOException {
    byte[] magic = control.readRaw(MAGIC.length, deadline);
    if (!Arrays.equals(magic, MAGIC)) {
      throw new MalformedMessageException("it does not use the protocol of a store over Aeron");
    }
    int version = control.readByte(deadline);
    if (version != VERSION) {
      throw new MalformedMessageException(
          "it uses version %d of the protocol, but this process uses version %d"
              .formatted(version, VERSION));
    }
  }
}
