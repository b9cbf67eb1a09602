package dev.tutti.gloo.transport;

import java.lang.foreign.MemorySegment;

/** A message that arrived before this rank asked for it. */
final class EarlyMessage {
  /** The maximum length in bytes of a message that is sent before the receiver requests it. */
  static final int MAX_BYTES = 4096;

  final MemorySegment bytes = MemorySegment.ofArray(new byte[MAX_BYTES]);
  long length;
  long signature;

  /** The location of the message in its sender's memory; 0 if {@link #bytes} holds it. */
  long address;
}
