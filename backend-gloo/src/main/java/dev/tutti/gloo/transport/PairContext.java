package dev.tutti.gloo.transport;

import dev.tutti.cpu.memory.SharedHeap;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.Time;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What all pairs of a transport share. The transport's lock guards what changes. */
final class PairContext {
  private static final int IN_BYTES = 128 * 1024;

  final int rank;
  final String group;
  final Time time;
  final TransportLog log;
  final ProgressEngine progress;
  final Requests requests;
  final PairListener listener;
  final Views views;

  /** Receives whatever is available for any pair. */
  final ByteBuffer in = ByteBuffer.allocateDirect(IN_BYTES).order(ByteOrder.LITTLE_ENDIAN);

  final MemorySegment inMemory = MemorySegment.ofBuffer(in);

  /** Whether this rank and its peers may read each other's memory. */
  final boolean readsMemory;

  final boolean mapsTensors;

  private final boolean[] tutti;
  private long arrivals;
  private long signature;
  private int signedTag;

  PairContext(
      BackendContext context,
      TransportLog log,
      ProgressEngine progress,
      Requests requests,
      Views views,
      PairListener listener) {
    this.rank = context.rank();
    this.group = context.group();
    this.time = context.time();
    this.log = log;
    this.progress = progress;
    this.requests = requests;
    this.views = views;
    this.listener = listener;
    this.readsMemory = RemoteMemory.isAllowed(context.settings());
    this.mapsTensors = readsMemory && context.settings().get(SharedHeap.SETTING);
    this.tutti = new boolean[context.size()];
  }

  /** Returns whether a peer is a Tutti rank, not a PyTorch one. */
  boolean isTutti(int peer) {
    return tutti[peer];
  }

  void setTutti(int peer, boolean isTutti) {
    tutti[peer] = isTutti;
  }

  /** Sets the values that the ranks must agree on in the next collective. */
  void sign(long newSignature, int tag) {
    signature = newSignature;
    signedTag = tag;
  }

  long signature() {
    return signature;
  }

  int signedTag() {
    return signedTag;
  }

  long nextArrival() {
    return arrivals++;
  }
}
