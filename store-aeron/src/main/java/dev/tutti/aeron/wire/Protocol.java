package dev.tutti.aeron.wire;

/** The codes and layout of the store's messages over Aeron. */
public final class Protocol {
  /*
   * A message is a code, a call number and a body. It travels in one or several consecutive frames
   * on its stream, with nothing between them but messages of one frame; each frame is one Aeron
   * message:
   *
   *   0  byte   VERSION
   *   1  byte   FIRST, LAST
   *   2  short  code: what is asked, or how it went
   *   4  int    bytes of the whole body
   *   8  long   number of the call, which the reply repeats
   *  16  long   number of the session, which only its two ends have
   *  24  ...    this frame's part of the body
   *
   * All numbers are little-endian; texts are UTF-8, preceded by an int with their length in bytes.
   * Each request gets exactly one reply; CANCEL gets none. A client that cancels a wait gets the
   * reply of that wait: what arrived, or what is missing.
   */
  /** The version of frames, which members of a cluster also keep in their logs. */
  public static final byte VERSION = 1;

  static final int FIRST = 1;
  static final int LAST = 2;

  static final int FLAGS_OFFSET = 1;
  static final int CODE_OFFSET = 2;
  static final int TOTAL_OFFSET = 4;
  public static final int CALL_OFFSET = 8;
  static final int SESSION_OFFSET = 16;
  public static final int HEADER_BYTES = 24;

  /** The maximum length of a body, so that no message can fill the heap. */
  public static final int MAX_BODY_BYTES = 256 << 20;

  public static final int SET = 1;
  public static final int FETCH = 2;
  public static final int WAIT = 3;
  public static final int ADD = 4;
  public static final int SWAP = 5;
  public static final int CHECK = 6;
  public static final int DELETE = 7;
  public static final int COUNT = 8;
  public static final int APPEND = 9;
  public static final int MULTI_SET = 10;
  public static final int PUSH = 11;
  public static final int POP = 12;
  public static final int LENGTH = 13;
  public static final int LIST = 14;
  public static final int BARRIER = 15;
  public static final int CANCEL = 16;
  public static final int WILL = 17;
  public static final int WITHDRAW = 18;

  /** The request succeeded; the body depends on the request. */
  public static final int OK = 0;

  /** The data do not allow the request; the body is the reason. */
  public static final int FAILED = 1;

  /** A wait ended without what it waited for; the body depends on the request. */
  public static final int MISSING = 2;

  private Protocol() {}
}
