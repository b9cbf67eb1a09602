package dev.tutti.gloo.transport;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Corrupts frames as a broken or malicious peer would. */
final class Mutations {
  private static final long[] WORDS = {
    0,
    1,
    -1,
    47,
    48,
    49,
    Header.BYTES + EarlyMessage.MAX_BYTES,
    EarlyMessage.MAX_BYTES,
    EarlyMessage.MAX_BYTES + 1,
    Integer.MAX_VALUE,
    1L << 32,
    1L << 40,
    Long.MAX_VALUE,
    Long.MAX_VALUE - 47,
    Long.MIN_VALUE
  };
  private static final long[] OPCODES = {
    Header.SEND_BUFFER,
    Header.SEND_UNBOUND_BUFFER,
    Header.NOTIFY_SEND_READY,
    Header.NOTIFY_RECV_READY,
    Header.EAGER,
    Header.FAREWELL,
    Header.DOORBELL,
    Header.INTRODUCTION,
    Header.READABLE,
    Header.LOAN,
    Header.OFFER,
    Header.RETURN,
    4
  };
  private static final long[] SLOTS = {
    5, 6, 7, Slot.ALL_REDUCE.of(3), Slot.ALL_GATHER.of(3), Slot.ALL_REDUCE.of(4), -1, -2, 0, 1
  };
  private static final int MANY = 50;

  private Mutations() {}

  /** Returns a stream of frames, corrupted one to three times. */
  static byte[] spoiled(SplittableRandom random, List<byte[]> valid) {
    List<byte[]> frames = new ArrayList<>(valid);
    int count = 1 + random.nextInt(3);
    for (int i = 0; i < count; i++) {
      spoilFrames(random, frames);
    }
    byte[] stream = joined(frames);
    return random.nextInt(4) == 0 ? spoiledBytes(random, stream) : stream;
  }

  /** Returns frames as one stream. */
  static byte[] joined(List<byte[]> frames) {
    ByteBuffer out = ByteBuffer.allocate(frames.stream().mapToInt(frame -> frame.length).sum());
    frames.forEach(out::put);
    return out.array();
  }

  private static void spoilFrames(SplittableRandom random, List<byte[]> frames) {
    int place = random.nextInt(frames.size() + 1);
    if (place == frames.size()) {
      frames.add(anyFrame(random));
      return;
    }
    switch (random.nextInt(8)) {
      case 0, 1, 2 -> frames.set(place, withWord(random, frames.get(place)));
      case 3 -> frames.remove(place);
      case 4 -> frames.add(place, frames.get(random.nextInt(frames.size())));
      case 5 -> frames.add(random.nextInt(frames.size()), frames.remove(place));
      case 6 -> frames.add(place, anyFrame(random));
      default -> {
        byte[] frame = random.nextBoolean() ? frames.get(place) : anyFrame(random);
        for (int i = random.nextInt(MANY); i > 0; i--) {
          frames.add(place, frame);
        }
      }
    }
  }

  private static byte[] withWord(SplittableRandom random, byte[] frame) {
    byte[] changed = frame.clone();
    ByteBuffer words = ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN);
    int field = random.nextInt(6);
    long value =
        switch (random.nextInt(4)) {
          case 0 -> random.nextLong();
          case 1 -> words.getLong(8 * field) + random.nextInt(-2, 3);
          case 2 -> field == 1 ? any(random, OPCODES) : any(random, SLOTS);
          default -> any(random, WORDS);
        };
    words.putLong(8 * field, value);
    if (field == 4 && random.nextBoolean()) {
      words.putLong(0, Header.BYTES + value);
    }
    return changed;
  }

  /** Returns a frame that may be valid at some point. */
  static byte[] anyFrame(SplittableRandom random) {
    long opcode = any(random, OPCODES);
    int length = Header.hasPayload(opcode) ? random.nextInt(70) : random.nextInt(3);
    long bytes = Header.hasPayload(opcode) ? Header.BYTES + length : Header.BYTES;
    long signature = random.nextInt(8) == 0 ? random.nextLong() : 0;
    byte[] header = RawPeer.words(bytes, opcode, any(random, SLOTS), 0, length, signature);
    byte[] frame = new byte[(int) bytes];
    random.nextBytes(frame);
    System.arraycopy(header, 0, frame, 0, header.length);
    return frame;
  }

  private static byte[] spoiledBytes(SplittableRandom random, byte[] stream) {
    if (stream.length == 0) {
      return stream;
    }
    int at = random.nextInt(stream.length);
    int length = 1 + random.nextInt(Math.min(100, stream.length - at));
    byte[] piece = new byte[length];
    return switch (random.nextInt(5)) {
      case 0 -> {
        random.nextBytes(piece);
        yield replaced(stream, at, length, piece);
      }
      case 1 -> {
        stream[at] ^= (byte) (1 << random.nextInt(8));
        yield stream;
      }
      case 2 -> replaced(stream, at, length, new byte[0]);
      case 3 -> replaced(stream, at, stream.length - at, new byte[0]);
      default -> {
        random.nextBytes(piece);
        yield replaced(stream, at, 0, piece);
      }
    };
  }

  private static byte[] replaced(byte[] stream, int at, int length, byte[] piece) {
    byte[] changed = new byte[stream.length - length + piece.length];
    System.arraycopy(stream, 0, changed, 0, at);
    System.arraycopy(piece, 0, changed, at, piece.length);
    int rest = stream.length - at - length;
    System.arraycopy(stream, at + length, changed, at + piece.length, rest);
    return changed;
  }

  private static long any(SplittableRandom random, long... values) {
    return values[random.nextInt(values.length)];
  }
}
