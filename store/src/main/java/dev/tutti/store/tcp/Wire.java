package dev.tutti.store.tcp;

import org.jspecify.annotations.Nullable;

/**
 * The constants of PyTorch's TCPStore wire protocol, with the protocol generation that introduced
 * each query. Numbers are little-endian; a string or value is an i64 length and its bytes; a list
 * is an i64 count and its items.
 */
final class Wire {
  /*
   * A shape describes the body of a request: K key, B bytes, N i64, U u32, R 32 raw bytes; a star
   * repeats what follows it as often as the count that precedes the items.
   *
   * Queries from SWAP on are Tutti's own. A client sends them only to a server that has answered
   * the capability question: a COMPARE_SET of key CAPABILITY that expects and desires the same
   * fresh bytes. A PyTorch server has no such key, so it stores nothing and returns these bytes; a
   * Tutti server returns CAPABILITY_VERSION, a space and the number of its instance. The key has no
   * leading slash and is therefore distinct from all user keys.
   *
   * Most requests have no reply that could say that they were refused: the server drops the client.
   * A client that was dropped connects again and asks why: a COMPARE_SET of key REFUSAL with the
   * bytes of its capability question, which name it. The server returns the reason, or the same
   * bytes if there is none.
   *
   * A client with a token sends CHALLENGE and PROVE before anything else (TokenHandshake), even to
   * an unknown server: a PyTorch server drops the client for that. A server with
   * a token drops a client that sends anything else first; it answers the capability question with
   * TOKEN_NEEDED before it does so.
   */
  /** Generation C: PyTorch 2.2. */
  static final int VALIDATE = 0;

  static final int SET = 1;
  static final int COMPARE_SET = 2;
  static final int GET = 3;
  static final int ADD = 4;
  static final int CHECK = 5;
  static final int WAIT = 6;
  static final int GET_NUM_KEYS = 7;
  static final int DELETE_KEY = 8;
  static final int APPEND = 9;
  static final int MULTI_GET = 10;
  static final int MULTI_SET = 11;
  static final int CANCEL_WAIT = 12;

  /** Generation D: seen in PyTorch 2.7. */
  static final int PING = 13;

  /** Generation E: PyTorch 2.8, its event-loop server only. */
  static final int QUEUE_PUSH = 14;

  static final int QUEUE_POP = 15;
  static final int QUEUE_LENGTH = 16;

  /** Generation F: seen in PyTorch 2.10. */
  static final int LIST_KEYS = 17;

  /** Generation G: after PyTorch 2.10. */
  static final int BARRIER = 18;

  /** Key, 1 if a value is expected or else 0, the expected bytes, the desired bytes. */
  static final int SWAP = 0x80;

  /** Waits for keys as WAIT does, and promises not to pop afterwards. */
  static final int LOOK = 0x81;

  /**
   * Waits until all keys have values; the answer is the byte {@link #STOP_WAITING}, then the
   * values.
   */
  static final int FETCH = 0x82;

  /**
   * Waits for a value of a queue and takes it; the answer is the byte {@link #STOP_WAITING}, then
   * the value.
   */
  static final int TAKE = 0x83;

  /** Returns how many members are waiting at a barrier, and how many it has, both as i64. */
  static final int BARRIER_STATE = 0x84;

  /**
   * The client's nonce, 32 bytes; the answer is {@link #TOKEN_OK} and the server's nonce, or
   * TOKEN_REFUSED.
   */
  static final int CHALLENGE = 0x90;

  /**
   * The client's proof, 32 bytes; the answer is {@link #TOKEN_OK} and the server's proof, or
   * TOKEN_REFUSED.
   */
  static final int PROVE = 0x91;

  /** Labels that make the client's proof differ from the server's. */
  static final String CLIENT_PROOF = "tutti store client 1";

  static final String SERVER_PROOF = "tutti store server 1";

  static final byte TOKEN_OK = 0;
  static final byte TOKEN_REFUSED = 1;

  static final int MAGIC = 0x3C85F7CE;

  /** The first byte of a client that starts TLS (RFC 8446, section 5.1). */
  static final byte TLS_HANDSHAKE = 22;

  /** The second byte of TLS. */
  static final byte TLS_MAJOR = 3;

  /** The length of the header of a TLS record, which ends with the length of the rest. */
  static final int TLS_HEADER_BYTES = 5;

  /** The most bytes of a TLS record behind its header. */
  static final int TLS_MOST_BYTES = 1 << 14;

  /** How a server without TLS answers such a client: the fatal alert "unexpected message". */
  static final byte[] TLS_ALERT = {21, 3, 3, 0, 2, 2, 10};

  static final byte READY = 0;
  static final byte NOT_READY = 1;
  static final byte STOP_WAITING = 0;
  static final byte WAIT_CANCELED = 1;

  /** The key that counts the processes that joined. */
  static final String INIT_KEY = "init/";

  /** The key of the capability question. */
  static final String CAPABILITY = "tutti/capability";

  /** The number of bytes that name a client. */
  static final int NAME_BYTES = 16;

  /** The key of the question why the server dropped a client. */
  static final String REFUSAL = "tutti/refusal";

  static final String CAPABILITY_VERSION = "tutti-1";

  /** The answer to the capability question of a client that has not proved the token. */
  static final String TOKEN_NEEDED = "tutti-token-needed";

  private static final @Nullable String[] SHAPES = new String[256];

  static {
    SHAPES[SET] = "KB";
    SHAPES[COMPARE_SET] = "KBB";
    SHAPES[GET] = "K";
    SHAPES[ADD] = "KN";
    SHAPES[CHECK] = "*K";
    SHAPES[WAIT] = "*K";
    SHAPES[GET_NUM_KEYS] = "";
    SHAPES[DELETE_KEY] = "K";
    SHAPES[APPEND] = "KB";
    SHAPES[MULTI_GET] = "*K";
    SHAPES[MULTI_SET] = "*KB";
    SHAPES[CANCEL_WAIT] = "";
    SHAPES[PING] = "U";
    SHAPES[QUEUE_PUSH] = "KB";
    SHAPES[QUEUE_POP] = "K";
    SHAPES[QUEUE_LENGTH] = "K";
    SHAPES[LIST_KEYS] = "";
    SHAPES[BARRIER] = "KN";
    SHAPES[SWAP] = "KNBB";
    SHAPES[LOOK] = "*K";
    SHAPES[FETCH] = "*K";
    SHAPES[TAKE] = "K";
    SHAPES[BARRIER_STATE] = "K";
    SHAPES[CHALLENGE] = "R";
    SHAPES[PROVE] = "R";
  }

  private Wire() {}

  /** Returns the shape of a query's body, or null if there is no such query after the first. */
  static @Nullable String shape(int query) {
    return SHAPES[query];
  }
}
