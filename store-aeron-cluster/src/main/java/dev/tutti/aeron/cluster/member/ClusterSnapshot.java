package dev.tutti.aeron.cluster.member;

import dev.tutti.aeron.server.Caller;
import dev.tutti.aeron.wire.BodyReader;
import dev.tutti.aeron.wire.BodyWriter;
import dev.tutti.aeron.wire.FrameReader;
import dev.tutti.aeron.wire.FrameWriter;
import dev.tutti.aeron.wire.Protocol;
import dev.tutti.store.table.KeyTable;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.cluster.client.ClusterException;
import io.aeron.cluster.service.ClientSession;
import io.aeron.cluster.service.Cluster;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The writer and reader of snapshots of a member's state. */
final class ClusterSnapshot {
  /*
   * A snapshot consists of records in the store's own frames: first keys, then queues, then clients
   * with their wills, partial requests, calls and answers. The waiting calls come last, in the
   * order in which they arrived: when they are run again, each waits behind those before it, as it
   * did.
   */
  private static final int KEY = 1;
  private static final int QUEUED = 2;
  private static final int CALLER = 3;
  private static final int WILL = 4;
  private static final int SLOT = 5;
  private static final int WAITING = 6;
  private static final int END = 7;
  private static final int FRAMES_AT_ONCE = 64;

  /** Room for the longest body of a request, and for what a record adds to it. */
  private static final int MAX_RECORD_BYTES = Protocol.MAX_BODY_BYTES + 1024;

  private final KeyTable table;
  private final Map<Long, ClusterCaller> callers;
  private final Function<ClientSession, ClusterCaller> add;
  private final BodyWriter body = new BodyWriter(MAX_RECORD_BYTES);
  private boolean ended;

  /**
   * Creates a writer and reader of one state.
   *
   * @param table the keys and queues
   * @param callers the clients, by session
   * @param add adds a client
   */
  ClusterSnapshot(
      KeyTable table,
      Map<Long, ClusterCaller> callers,
      Function<ClientSession, ClusterCaller> add) {
    this.table = table;
    this.callers = callers;
    this.add = add;
  }

  @SuppressWarnings("ArrayRecordComponent")
  private record Waiting(long client, ClusterCaller.Slot slot, byte[] request) {}

  /** Writes the whole state; returns when it is written. */
  void save(Cluster cluster, ExclusivePublication out) {
    save(cluster, new FrameWriter(out, 0));
  }

  void save(Cluster cluster, FrameWriter writer) {
    for (String key : table.keys()) {
      body.clear().putText(key);
      body.putBytes(Objects.requireNonNull(table.get(key)));
      write(cluster, writer, KEY);
    }
    for (String key : table.queues()) {
      for (byte[] value : table.queued(key)) {
        body.clear().putText(key);
        body.putBytes(value);
        write(cluster, writer, QUEUED);
      }
    }
    List<Waiting> waiting = new ArrayList<>();
    for (Map.Entry<Long, ClusterCaller> entry : callers.entrySet()) {
      long client = entry.getKey();
      ClusterCaller caller = entry.getValue();
      body.clear().putLong(client);
      body.putByte(caller.dropped ? 1 : 0);
      caller.reader.save(body);
      write(cluster, writer, CALLER);
      for (Map.Entry<Long, Caller.Will> will : caller.wills.entrySet()) {
        body.clear().putLong(client);
        body.putLong(will.getKey());
        body.putText(will.getValue().log());
        body.putBytes(will.getValue().value());
        write(cluster, writer, WILL);
      }
      for (ClusterCaller.Slot slot : caller.slots.values()) {
        byte[] request = slot.request;
        if (request != null) {
          waiting.add(new Waiting(client, slot, request));
        } else {
          put(client, slot);
          body.putInt(slot.answerCode);
          body.putOptional(slot.answer);
          write(cluster, writer, SLOT);
        }
      }
    }
    waiting.sort(Comparator.comparingLong(wait -> wait.slot.order));
    for (Waiting wait : waiting) {
      put(wait.client, wait.slot);
      body.putBytes(wait.request);
      write(cluster, writer, WAITING);
    }
    body.clear();
    write(cluster, writer, END);
  }

  private void put(long client, ClusterCaller.Slot slot) {
    body.clear().putLong(client);
    body.putLong(slot.call);
    body.putInt(slot.code);
  }

  private void write(Cluster cluster, FrameWriter writer, int record) {
    int at = writer.write(record, 0, body.buffer(), body.length(), 0);
    while (at >= 0) {
      int before = at;
      cluster.idleStrategy().idle();
      at = writer.write(record, 0, body.buffer(), body.length(), at);
      if (at != before) {
        cluster.idleStrategy().reset();
      }
    }
  }

  /** Reads the whole state into a member that has just started. */
  void load(Cluster cluster, Image in) {
    FrameReader reader = reader(cluster);
    while (!ended) {
      int frames = in.poll(reader, FRAMES_AT_ONCE);
      if (frames == 0 && !ended && (in.isClosed() || in.isEndOfStream())) {
        throw new ClusterException("the snapshot of the store is truncated");
      }
      cluster.idleStrategy().idle(frames);
    }
  }

  /** Returns the reader for the frames of a snapshot. */
  FrameReader reader(Cluster cluster) {
    return new FrameReader(
        0, MAX_RECORD_BYTES, (record, number, read) -> take(cluster, record, read));
  }

  private void take(Cluster cluster, int record, BodyReader in) {
    switch (record) {
      case KEY -> table.set(in.readText(), in.readBytes());
      case QUEUED -> table.push(in.readText(), in.readBytes());
      case CALLER -> {
        ClientSession client = cluster.getClientSession(in.readLong());
        ClusterCaller caller = add.apply(Objects.requireNonNull(client));
        caller.dropped = in.readByte() != 0;
        caller.reader.restore(in);
      }
      case WILL ->
          caller(in).wills.put(in.readLong(), new Caller.Will(in.readText(), in.readBytes()));
      case SLOT -> {
        ClusterCaller caller = caller(in);
        ClusterCaller.Slot slot = slot(caller, in);
        slot.answerCode = in.readInt();
        slot.answer = in.readOptional();
      }
      case WAITING -> {
        ClusterCaller caller = caller(in);
        caller.runWait(slot(caller, in), in.readBytes());
      }
      case END -> ended = true;
      default -> throw new ClusterException("the snapshot has an unknown record " + record);
    }
  }

  private ClusterCaller caller(BodyReader in) {
    @Nullable ClusterCaller caller = callers.get(in.readLong());
    return Objects.requireNonNull(caller);
  }

  private static ClusterCaller.Slot slot(ClusterCaller caller, BodyReader in) {
    ClusterCaller.Slot slot = new ClusterCaller.Slot(in.readLong(), in.readInt());
    caller.slots.put((int) (slot.call & ((1L << CallNumbers.SLOT_BITS) - 1)), slot);
    return slot;
  }
}
