package dev.tutti.store.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.spi.Time;
import dev.tutti.store.JobToken;
import dev.tutti.store.table.ServerMemory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Feeds damaged and random requests to the server's reader, in pieces. It uses 100,000 streams by
 * default; {@code -Dtutti.fuzz=10000000} makes that 10 million.
 */
class RequestReaderFuzzTest {
  private static final int STREAMS = Integer.getInteger("tutti.fuzz", 100_000);
  private static final int MAX_STREAM = 4096;

  private final SplittableRandom random = new SplittableRandom(20261120);
  private final ByteBuffer stream = ByteBuffer.allocate(MAX_STREAM).order(ByteOrder.LITTLE_ENDIAN);
  private final ByteBuffer window =
      ByteBuffer.allocate(2 * MAX_STREAM).order(ByteOrder.LITTLE_ENDIAN);
  private long requests;
  private long refused;

  @Test
  @Timeout(900)
  void refusesOrReadsButNeverBreaks() {
    for (int i = 0; i < STREAMS; i++) {
      stream.clear();
      stream.put((byte) Wire.VALIDATE).putInt(Wire.MAGIC);
      int valid = random.nextInt(4);
      for (int request = 0; request < valid; request++) {
        putRequest();
      }
      damage();
      stream.flip();
      feed();
    }
    // Both extremes must occur, or the streams test nothing.
    assertThat(requests).isGreaterThan(STREAMS / 4);
    assertThat(refused).isGreaterThan(STREAMS / 10);
  }

  private void putRequest() {
    int query = random.nextInt(20);
    String shape = Wire.shape(query);
    if (shape == null) {
      return;
    }
    stream.put((byte) query);
    int star = shape.indexOf('*');
    int rounds = star < 0 ? 1 : random.nextInt(4);
    putFields(star < 0 ? shape : shape.substring(0, star));
    if (star >= 0) {
      stream.putLong(rounds);
      for (int round = 0; round < rounds; round++) {
        putFields(shape.substring(star + 1));
      }
    }
  }

  private void putFields(String fields) {
    for (int i = 0; i < fields.length(); i++) {
      switch (fields.charAt(i)) {
        case 'K', 'B' -> {
          int size = random.nextInt(40);
          stream.putLong(size);
          for (int b = 0; b < size; b++) {
            stream.put((byte) random.nextInt());
          }
        }
        case 'N' -> stream.putLong(random.nextLong());
        default -> stream.putInt(random.nextInt());
      }
    }
  }

  private void damage() {
    int tail = random.nextInt(3) == 0 ? random.nextInt(64) : 0;
    for (int i = 0; i < tail; i++) {
      stream.put((byte) random.nextInt());
    }
    int flips = random.nextInt(4);
    for (int i = 0; i < flips; i++) {
      int at = random.nextInt(stream.position());
      byte value = random.nextBoolean() ? (byte) random.nextInt() : (byte) (random.nextInt(2) * -1);
      stream.put(at, value);
    }
    if (random.nextInt(3) == 0) {
      stream.position(random.nextInt(stream.position() + 1));
    }
  }

  private void feed() {
    JobToken token = random.nextInt(8) == 0 ? JobToken.of("the token of this job") : JobToken.NONE;
    SendQueue replies = new SendQueue(Time.SYSTEM);
    RequestReader reader =
        new RequestReader(
            new TokenGate(token, replies), new ServerMemory(Time.SYSTEM).client(), replies);
    window.clear();
    try {
      while (stream.hasRemaining()) {
        int piece = Math.min(stream.remaining(), 1 + random.nextInt(100));
        window.put(window.position(), stream, stream.position(), piece);
        window.position(window.position() + piece);
        stream.position(stream.position() + piece);
        window.flip();
        int before = window.remaining();
        while (reader.next(window)) {
          requests++;
          assertThat(window.remaining()).isLessThan(before);
          before = window.remaining();
        }
        window.compact();
        assertThat(window.position()).isLessThanOrEqualTo(RequestReader.MAX_HELD_BYTES);
      }
    } catch (ProtocolException e) {
      refused++;
      assertThat(e.getMessage()).isNotEmpty();
    }
  }
}
