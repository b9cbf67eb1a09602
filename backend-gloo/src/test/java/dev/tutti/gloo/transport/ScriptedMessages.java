package dev.tutti.gloo.transport;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.gloo.transport.cma.RemoteMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The conversation of two ranks that keep to the protocol: the peer's frames, and the sends and
 * receives of this rank that belong to them.
 */
final class ScriptedMessages {
  /** The signature of all messages, if they have one. */
  static final long SIGNATURE = Signature.of(OpType.ALL_REDUCE, DType.INT8, 0, 0);

  /** The number of the current collective. */
  static final int TAG = 3;

  private static final long[] SLOTS = {
    5, 6, Slot.ALL_REDUCE.of(TAG), Slot.ALL_GATHER.of(TAG), Slot.BROADCAST.of(TAG)
  };
  private static final int MOST_MESSAGES = 6;
  private static final int LARGE = 9000;
  private static final byte HELD = 1;

  /** Adds incoming data to existing data byte by byte, but only in whole units. */
  private record Adding(int unitBytes) implements Combiner {
    @Override
    public void combine(
        MemorySegment held, long heldOffset, MemorySegment received, long offset, long bytes) {
      if (bytes <= 0 || bytes % unitBytes != 0) {
        throw new AssertionError("combines " + bytes + " bytes of units of " + unitBytes);
      }
      for (long i = 0; i < bytes; i++) {
        int sum =
            held.get(ValueLayout.JAVA_BYTE, heldOffset + i)
                + received.get(ValueLayout.JAVA_BYTE, offset + i);
        held.set(ValueLayout.JAVA_BYTE, heldOffset + i, (byte) sum);
      }
    }
  }

  /** A message with this rank at one end. */
  private static final class Message {
    final int number;
    final long slot;
    final int length;
    final Combiner combiner;
    final MemorySegment memory;
    Request request;

    final @Nullable MemorySegment lent;

    Message(int number, long slot, int length, Combiner combiner, boolean isOffered) {
      this.number = number;
      this.slot = slot;
      this.length = length;
      this.combiner = combiner;
      memory =
          isOffered ? Arena.ofAuto().allocate(length) : MemorySegment.ofArray(new byte[length]);
      lent = isOffered ? Arena.ofAuto().allocate(length).copyFrom(ofPayload()) : null;
    }

    private MemorySegment ofPayload() {
      return MemorySegment.ofArray(payload());
    }

    byte value(int index) {
      return (byte) (number * 7 + index * 31 + (index >> 8));
    }

    byte[] payload() {
      byte[] bytes = new byte[length];
      for (int i = 0; i < length; i++) {
        bytes[i] = value(i);
      }
      return bytes;
    }

    void send(Transport transport, int peer) {
      MemorySegment.copy(payload(), 0, memory, ValueLayout.JAVA_BYTE, 0, length);
      request = transport.send(peer, slot, memory, 0, length);
    }

    void receive(Transport transport, int peer) {
      if (combiner == null) {
        request = transport.receive(peer, slot, memory, 0, length);
      } else {
        memory.fill(HELD);
        request = transport.receiveCombining(peer, slot, memory, 0, length, combiner);
      }
    }

    void assertReceived() {
      if (request.state != Request.DONE) {
        throw new AssertionError(request.describe() + " is in state " + request.state);
      }
      for (int i = 0; i < length; i++) {
        byte expected = (byte) (value(i) + (combiner == null ? 0 : HELD));
        if (memory.get(ValueLayout.JAVA_BYTE, i) != expected) {
          throw new AssertionError(request.describe() + " has another byte " + i);
        }
      }
    }
  }

  private final SplittableRandom random;
  private final boolean tutti;
  private final boolean ring;
  private final boolean offers;
  private final List<Message> received = new ArrayList<>();
  private final List<Message> sent = new ArrayList<>();
  private final List<byte[]> frames = new ArrayList<>();
  private final boolean[] late = new boolean[SLOTS.length];

  /**
   * Creates messages.
   *
   * @param random determines the messages
   * @param tutti whether the peer is a Tutti rank
   * @param ring whether they go through rings
   */
  ScriptedMessages(SplittableRandom random, boolean tutti, boolean ring) {
    this.random = random;
    this.tutti = tutti;
    this.ring = ring;
    offers = ring && tutti && RemoteMemory.isAllowed() && random.nextBoolean();
    int receives = random.nextInt(MOST_MESSAGES);
    boolean[] eager = new boolean[receives];
    for (int slot = 0; slot < SLOTS.length; slot++) {
      late[slot] = random.nextInt(3) == 0;
    }
    for (int i = 0; i < receives; i++) {
      int slot = random.nextInt(SLOTS.length);
      Message message = message(i, SLOTS[slot], offers);
      received.add(message);
      eager[i] = message.lent != null || (mayBeEager(message) && random.nextInt(4) > 0);
      // An announced message comes only after its receive.
      late[slot] &= eager[i];
    }
    for (int i = 0; i < receives; i++) {
      Message message = received.get(i);
      if (message.lent != null) {
        frames.add(offer(message, message.lent.address()));
      } else if (eager[i]) {
        frames.add(frame(Header.EAGER, message.slot, message.payload()));
      } else {
        frames.add(frame(Header.NOTIFY_SEND_READY, message.slot, message.length));
        frames.add(frame(Header.SEND_UNBOUND_BUFFER, message.slot, message.payload()));
      }
    }
    int sends = random.nextInt(3);
    for (int i = 0; i < sends; i++) {
      Message message = message(receives + i, SLOTS[random.nextInt(SLOTS.length)], false);
      sent.add(message);
      int at = random.nextInt(frames.size() + 1);
      frames.add(at, frame(Header.NOTIFY_RECV_READY, message.slot, message.length));
    }
  }

  /**
   * Returns whether the peer offers some messages to be copied from its memory, which is this
   * process's own.
   */
  boolean offers() {
    return offers;
  }

  private Message message(int number, long slot, boolean mayBeOffered) {
    int unit = 1 << random.nextInt(5);
    int length =
        switch (random.nextInt(128)) {
          case 0 -> EarlyMessage.MAX_BYTES - random.nextInt(2) * unit;
          case 1 -> LARGE / unit * unit;
          case 2, 3, 4, 5, 6 -> 0;
          default -> (random.nextInt(64) + 1) * unit;
        };
    Combiner combiner = random.nextInt(3) == 0 ? new Adding(unit) : null;
    boolean isOffered = mayBeOffered && combiner == null && length > 0 && random.nextBoolean();
    return new Message(number, slot, length, combiner, isOffered);
  }

  private boolean mayBeEager(Message message) {
    return tutti
        && !ring
        && Slot.isMutual(message.slot)
        && message.length <= EarlyMessage.MAX_BYTES;
  }

  private byte[] frame(int opcode, long slot, byte[] payload) {
    byte[] frame = new byte[Header.BYTES + payload.length];
    byte[] header = RawPeer.words(frame.length, opcode, slot, 0, payload.length, signature());
    System.arraycopy(header, 0, frame, 0, header.length);
    System.arraycopy(payload, 0, frame, header.length, payload.length);
    return frame;
  }

  private byte[] frame(int opcode, long slot, long length) {
    return RawPeer.words(Header.BYTES, opcode, slot, 0, length, signature());
  }

  private byte[] offer(Message message, long address) {
    return RawPeer.words(
        Header.BYTES, Header.OFFER, message.slot, address, message.length, signature());
  }

  private long signature() {
    return tutti && random.nextBoolean() ? SIGNATURE : 0;
  }

  /** Returns the peer's frames, which the caller may corrupt. */
  List<byte[]> frames() {
    return frames;
  }

  /** Starts the sends, and the receives that must exist before the messages arrive. */
  void begin(Transport transport, int peer) {
    sent.forEach(message -> message.send(transport, peer));
    received.stream()
        .filter(message -> !isLate(message))
        .forEach(message -> message.receive(transport, peer));
  }

  /** Starts the receives of messages that arrived early. */
  void end(Transport transport, int peer) {
    received.stream().filter(this::isLate).forEach(message -> message.receive(transport, peer));
  }

  private boolean isLate(Message message) {
    int slot = 0;
    while (SLOTS[slot] != message.slot) {
      slot++;
    }
    return late[slot];
  }

  /** Asserts that everything was received, byte for byte. */
  void assertReceived() {
    received.forEach(Message::assertReceived);
  }

  /**
   * Asserts that a stream contains the messages that this rank sent, with those of a slot in order.
   */
  void assertSent(byte[] stream) {
    List<Message> expected = new ArrayList<>(sent);
    ByteBuffer in = ByteBuffer.wrap(stream).order(ByteOrder.LITTLE_ENDIAN);
    while (in.hasRemaining()) {
      int at = in.position();
      long opcode = Header.opcode(in, at);
      int length = Header.hasPayload(opcode) ? (int) Header.length(in, at) : 0;
      if (Header.nbytes(in, at) != Header.BYTES + length) {
        throw new AssertionError("sent a header of " + Header.nbytes(in, at) + " bytes");
      }
      if (Header.hasPayload(opcode)) {
        long slot = Header.slot(in, at);
        Message message =
            expected.stream().filter(each -> each.slot == slot).findFirst().orElseThrow();
        expected.remove(message);
        int start = at + Header.BYTES;
        if (!Arrays.equals(message.payload(), Arrays.copyOfRange(stream, start, start + length))) {
          throw new AssertionError(message.request.describe() + " was not sent as it is");
        }
      }
      in.position(at + Header.BYTES + length);
    }
    if (!expected.isEmpty()) {
      throw new AssertionError(expected.size() + " messages were not sent");
    }
  }

  /** Asserts that nothing is pending. */
  void assertEnded() {
    for (List<Message> messages : List.of(sent, received)) {
      for (Message message : messages) {
        if (message.request != null && message.request.state == Request.PENDING) {
          throw new AssertionError(message.request.describe() + " is pending after the failure");
        }
      }
    }
  }
}
