package dev.tutti.cli.strangers;

import dev.tutti.aeron.cluster.member.ClusterHello;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/** What strangers send: random bytes, and frames with the right headers and hostile fields. */
final class HostileBytes {
  private static final int MOST_NOISE = 4096;
  private static final int LARGEST = 65_536;
  private static final byte[] STORE_GREETING = {0, (byte) 0xce, (byte) 0xf7, (byte) 0x85, 0x3c};
  private static final long[] EDGES = {
    0,
    1,
    -1,
    48,
    4096,
    1 << 16,
    (8 << 20) + 1,
    1L << 30,
    Integer.MAX_VALUE,
    Integer.MIN_VALUE,
    1L << 40,
    Long.MAX_VALUE,
    Long.MIN_VALUE
  };
  private static final int[] GLOO_OPCODES = {
    0,
    1,
    2,
    3,
    0x54757474,
    0x54757475,
    0x54757476,
    0x54757477,
    0x54757478,
    0x54757479,
    0x5475747a,
    0x5475747b
  };
  // The lengths of the headers of Aeron's frames: padding or data, data, NAK, status, error, setup,
  // ...
  private static final int[] AERON_LENGTHS = {32, 32, 28, 36, 40, 40, 40, 36, 28, 12, 24, 36, 36};
  private static final String[] CHANNELS = {
    "aeron:udp?endpoint=127.0.0.1:9",
    "aeron:udp?endpoint=127.0.0.1:0|term-length=1g",
    "aeron:udp?endpoint=127.0.0.1:40123|mtu=65504|so-sndbuf=64m",
    "aeron:udp?control=127.0.0.1:40456|control-mode=dynamic",
    "aeron:ipc?term-length=1g",
    "aeron-spy:aeron:udp?endpoint=127.0.0.1:9",
    "aeron:udp?endpoint=127.0.0.1:99999",
    "aeron:udp",
    "",
    "aeron:udp?alias=" + "x".repeat(500),
    "\u0000\u001b[2J|?="
  };

  private final SplittableRandom random;

  HostileBytes(SplittableRandom random) {
    this.random = random;
  }

  byte[] noise() {
    byte[] bytes = new byte[1 + random.nextInt(random.nextBoolean() ? 64 : MOST_NOISE)];
    random.nextBytes(bytes);
    return bytes;
  }

  private long edge() {
    return random.nextInt(4) == 0 ? random.nextLong() : EDGES[random.nextInt(EDGES.length)];
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static byte[] bytes(ByteBuffer rest) {
    byte[] bytes = new byte[rest.remaining()];
    rest.get(bytes);
    return bytes;
  }

  private byte[] mixed(byte[] greeting, Frame frame) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    if (random.nextInt(16) > 0) {
      out.writeBytes(greeting);
    }
    for (int i = random.nextInt(5); i > 0; i--) {
      out.writeBytes(random.nextInt(5) == 0 ? noise() : frame.bytes());
    }
    return out.toByteArray();
  }

  /** A maker of frames. */
  private interface Frame {
    byte[] bytes();
  }

  /** Returns requests for a {@code TcpStore}'s server. */
  byte[] ofTcpStore() {
    return mixed(STORE_GREETING, this::storeRequest);
  }

  private byte[] storeRequest() {
    ByteBuffer out = buffer(2 * LARGEST + 1024).put((byte) random.nextInt(40));
    for (int i = random.nextInt(4); i > 0; i--) {
      switch (random.nextInt(4)) {
        case 0 -> out.putLong(edge());
        case 1 -> out.putLong(random.nextInt(4));
        default -> {
          // Few keys, so that what they hold stays below the limit.
          byte[] key = ("stranger/" + random.nextInt(50)).getBytes(StandardCharsets.US_ASCII);
          out.putLong(key.length).put(key);
        }
      }
    }
    if (random.nextBoolean()) {
      byte[] value = new byte[random.nextInt(random.nextInt(8) == 0 ? LARGEST : 100)];
      random.nextBytes(value);
      out.putLong(value.length).put(value);
    }
    return bytes(out.flip());
  }

  /** Returns a greeting for a rank on gloo, and what may follow it. */
  byte[] ofGloo() {
    long greeting =
        switch (random.nextInt(4)) {
          case 0 -> 0x54757474L << 32 | random.nextInt(8);
          case 1 -> 0x54757474L << 32 | random.nextInt();
          case 2 -> random.nextInt(16);
          default -> edge();
        };
    return mixed(bytes(buffer(8).putLong(greeting).flip()), this::glooFrame);
  }

  private byte[] glooFrame() {
    int payload = random.nextInt(100);
    ByteBuffer out = buffer(48 + payload);
    out.putLong(random.nextInt(3) == 0 ? edge() : out.capacity());
    out.putLong(GLOO_OPCODES[random.nextInt(GLOO_OPCODES.length)]);
    out.putLong(random.nextBoolean() ? random.nextInt(4) : edge());
    out.putLong(edge()).putLong(random.nextInt(3) == 0 ? edge() : payload).putLong(edge());
    return bytes(out.clear());
  }

  /** Returns the first words of a client of an {@code AeronStore}. */
  byte[] ofAeronControl(int version) {
    ByteBuffer out = ByteBuffer.allocate(100);
    out.put("TuttiAer".getBytes(StandardCharsets.US_ASCII));
    out.put((byte) (random.nextInt(16) == 0 ? random.nextInt() : version));
    boolean token = random.nextInt(3) == 0;
    out.put((byte) (token ? 1 : 0));
    if (token) {
      byte[] nonce = new byte[random.nextInt(70)];
      random.nextBytes(nonce);
      out.put(nonce);
    }
    return bytes(out.flip());
  }

  /** Returns what a client of an {@code AeronStore} says of its transport. */
  byte[] ofAeronTransport(int ownPort) {
    ByteBuffer out = ByteBuffer.allocate(LARGEST);
    int transport = random.nextInt(16) == 0 ? random.nextInt(256) : 1 + random.nextInt(2);
    out.put((byte) transport);
    if (transport == 1) {
      out.putInt((int) edge());
    } else {
      byte[] where =
          switch (random.nextInt(4)) {
            case 0 -> CHANNELS[random.nextInt(CHANNELS.length)].getBytes(StandardCharsets.UTF_8);
            case 1 -> noise();
            default -> ("127.0.0.1:" + ownPort).getBytes(StandardCharsets.US_ASCII);
          };
      out.putInt(random.nextInt(8) == 0 ? (int) edge() : where.length).put(where);
    }
    return bytes(out.flip());
  }

  /** Returns a frame of Aeron with hostile fields. */
  byte[] aeronFrame() {
    int type = random.nextInt(AERON_LENGTHS.length);
    int length = AERON_LENGTHS[type] + (random.nextInt(4) == 0 ? random.nextInt(1200) : 0);
    ByteBuffer out = buffer(length);
    head(out, random.nextInt(3) == 0 ? (int) edge() : length, type);
    while (out.remaining() >= 4) {
      out.putInt((int) edge());
    }
    if (type == 5 && random.nextBoolean()) {
      // The terms of streams that a driver accepts, or would have to allocate 3 GiB for.
      out.putInt(24, random.nextBoolean() ? 65_536 : 1 << 30).putInt(28, 1408);
    }
    return bytes(out.clear());
  }

  private void head(ByteBuffer out, int length, int type) {
    out.putInt(length);
    out.put((byte) 0);
    out.put((byte) (type <= 1 ? 0xc0 : random.nextInt(256)));
    out.putShort((short) type);
  }

  /** Returns the frame that announces a stream, with terms that the driver may accept. */
  byte[] setup(int session, int stream) {
    ByteBuffer out = buffer(40);
    head(out, 40, 5);
    out.put(5, (byte) 0);
    int[] terms = {65_536, 131_072, 262_144, 262_144, 1 << 20, 1 << 30, 0, -1, 65_537};
    int[] mtus = {1408, 1408, 1408, 1408, 0, -1, 65_504, 33};
    out.putInt(random.nextInt(16) == 0 ? (int) edge() : 0);
    out.putInt(session).putInt(stream).putInt(7).putInt(random.nextInt(8) == 0 ? (int) edge() : 7);
    out.putInt(terms[random.nextInt(terms.length)]).putInt(mtus[random.nextInt(mtus.length)]);
    return bytes(out.putInt(random.nextInt(8) == 0 ? (int) edge() : 0).flip());
  }

  /** Returns a message on a stream that has been announced. */
  byte[] data(int session, int stream, int offset, byte[] message) {
    int frame = 32 + message.length;
    ByteBuffer out = buffer(frame + 31 & -32);
    head(out, frame, 1);
    out.put(5, (byte) 0xc0);
    out.putInt(offset).putInt(session).putInt(stream).putInt(7).putLong(0).put(message);
    return bytes(out.clear());
  }

  /** Returns a message to a cluster: a request for a session, or another of its messages. */
  byte[] clusterMessage() {
    byte[] channel = CHANNELS[random.nextInt(CHANNELS.length)].getBytes(StandardCharsets.UTF_8);
    byte[] credentials = random.nextInt(3) == 0 ? noise() : hello();
    ByteBuffer out = buffer(8 + 16 + 4 + channel.length + 4 + credentials.length + 64);
    boolean asks = random.nextInt(3) > 0;
    int template = asks ? 3 : random.nextInt(120);
    out.putShort((short) (asks && random.nextInt(8) > 0 ? 16 : random.nextInt(100)));
    out.putShort((short) template);
    out.putShort((short) (random.nextInt(16) == 0 ? random.nextInt() : 111));
    out.putShort((short) (random.nextInt(16) == 0 ? random.nextInt() : 15));
    // The identifier of the call, the stream for answers, the version of the protocol.
    out.putLong(edge()).putInt(random.nextInt(1000));
    out.putInt(random.nextInt(8) == 0 ? (int) edge() : 0x10000 | 12);
    out.putInt(random.nextInt(16) == 0 ? (int) edge() : channel.length).put(channel);
    out.putInt(random.nextInt(16) == 0 ? (int) edge() : credentials.length).put(credentials);
    return bytes(out.limit(Math.min(out.position(), 1300)).rewind());
  }

  private byte[] hello() {
    ByteBuffer out = ByteBuffer.allocate(ClusterHello.MAGIC.length + 10 + 64);
    out.put(ClusterHello.MAGIC).put((byte) (random.nextInt(8) == 0 ? random.nextInt() : 1));
    out.putLong(random.nextLong()).put((byte) random.nextInt(2));
    byte[] nonce = new byte[random.nextInt(4) == 0 ? random.nextInt(64) : 32];
    random.nextBytes(nonce);
    out.put(nonce);
    return bytes(out.flip());
  }
}
