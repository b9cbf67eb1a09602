package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;

/** Holds a message that came before this rank asked for it. */
final class EarlyMessage {
  /** The longest message that is sent before the receiver asks for it, in bytes. */
  static final int MAX_BYTES = 4096;

  final MemorySegment bytes = MemorySegment.ofArray(new byte[MAX_BYTES]);
  long length;
  long signature;

  /** Where the message is in its sender's memory; 0 if {@link #bytes} holds it. */
  long address;
}
