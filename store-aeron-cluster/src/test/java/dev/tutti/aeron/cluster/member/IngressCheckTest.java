package dev.tutti.aeron.cluster.member;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.aeron.driver.Channels;
import io.aeron.cluster.client.AeronCluster;
import io.aeron.cluster.codecs.ChallengeResponseEncoder;
import io.aeron.cluster.codecs.MessageHeaderEncoder;
import io.aeron.cluster.codecs.SessionConnectRequestEncoder;
import io.aeron.logbuffer.FrameDescriptor;
import io.aeron.protocol.DataHeaderFlyweight;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Tests which packets to a member of a cluster pass. */
class IngressCheckTest {
  private static final int STREAM = AeronCluster.Configuration.ingressStreamId();
  private static final int WHOLE = 0xff & FrameDescriptor.UNFRAGMENTED;
  private static final int BEGIN = 0xff & FrameDescriptor.BEGIN_FRAG_FLAG;
  private static final byte[] CREDENTIALS = {1, 2, 3};

  private static byte[] request() {
    ExpandableArrayBuffer buffer = new ExpandableArrayBuffer();
    SessionConnectRequestEncoder request =
        new SessionConnectRequestEncoder()
            .wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder())
            .correlationId(1)
            .responseStreamId(2)
            .version(3)
            .responseChannel("aeron:udp?endpoint=127.0.0.1:9")
            .putEncodedCredentials(CREDENTIALS, 0, CREDENTIALS.length)
            .clientInfo("a client");
    return Arrays.copyOf(
        buffer.byteArray(), MessageHeaderEncoder.ENCODED_LENGTH + request.encodedLength());
  }

  private static byte[] answer() {
    ExpandableArrayBuffer buffer = new ExpandableArrayBuffer();
    ChallengeResponseEncoder answer =
        new ChallengeResponseEncoder()
            .wrapAndApplyHeader(buffer, 0, new MessageHeaderEncoder())
            .correlationId(1)
            .clusterSessionId(2)
            .putEncodedCredentials(CREDENTIALS, 0, CREDENTIALS.length);
    return Arrays.copyOf(
        buffer.byteArray(), MessageHeaderEncoder.ENCODED_LENGTH + answer.encodedLength());
  }

  private static byte[] frame(int stream, int flags, byte[] message) {
    int length = DataHeaderFlyweight.HEADER_LENGTH + message.length;
    ByteBuffer out = ByteBuffer.allocate(length + 31 & -32).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(length).put((byte) 0).put((byte) flags).putShort((short) 1);
    return out.putInt(0).putInt(5).putInt(stream).putInt(7).putLong(0).put(message).array();
  }

  private static int filled(byte[]... frames) {
    ByteBuffer out = ByteBuffer.allocate(2000);
    Arrays.stream(frames).forEach(out::put);
    return IngressCheck.filled(new UnsafeBuffer(out), out.position());
  }

  private static boolean passes(byte[]... frames) {
    return filled(frames) >= 0;
  }

  /** Returns a message with another number in a field. */
  private static byte[] with(byte[] message, int at, int value) {
    byte[] changed = message.clone();
    ByteBuffer.wrap(changed).order(ByteOrder.LITTLE_ENDIAN).putInt(at, value);
    return changed;
  }

  @Test
  void messagesOfClientsPass() {
    byte[] request = frame(STREAM, WHOLE, request());
    byte[] answer = frame(STREAM, WHOLE, answer());
    assertThat(passes(request)).isTrue();
    assertThat(passes(answer)).isTrue();
    assertThat(filled(request, answer, request)).isEqualTo(2 * request.length + answer.length);
    assertThat(filled(with(Arrays.copyOf(request, 32), 0, 0))).as("a sign of life").isZero();
    assertThat(passes(frame(STREAM, BEGIN, new byte[1300]))).as("a part of a value").isTrue();
    assertThat(passes(frame(STREAM, 0, new byte[3]))).as("the end of a value").isTrue();
  }

  @Test
  void whatAnnouncesMoreThanItHasDoesNotPass() {
    int channel = MessageHeaderEncoder.ENCODED_LENGTH + SessionConnectRequestEncoder.BLOCK_LENGTH;
    int credentials = channel + Integer.BYTES + "aeron:udp?endpoint=127.0.0.1:9".length();
    int client = credentials + Integer.BYTES + CREDENTIALS.length;
    for (int at : new int[] {0, channel, credentials, client}) {
      for (int count : new int[] {60_000, Integer.MAX_VALUE, -1}) {
        byte[] hostile = with(request(), at, count);
        // Within the first word are also the kind of the message, which has to stay.
        byte[] kept = at == 0 ? with(request(), 0, 60_000 | 3 << 16) : hostile;
        assertThat(passes(frame(STREAM, WHOLE, kept))).as("%d at %d", count, at).isFalse();
        assertThat(passes(frame(STREAM, WHOLE, answer()), frame(STREAM, WHOLE, kept))).isFalse();
      }
    }
    assertThat(passes(frame(STREAM, WHOLE, with(answer(), 24, 1 << 30)))).isFalse();
  }

  @Test
  void whatAnnouncesItsLengthInAnotherPacketDoesNotPass() {
    assertThat(passes(frame(STREAM, BEGIN, request()))).isFalse();
    assertThat(passes(frame(STREAM, BEGIN, new byte[7]))).isFalse();
    assertThat(passes(frame(STREAM, WHOLE, Arrays.copyOf(request(), 24)))).isFalse();
  }

  /** Returns a header of what fills the rest of a term that begins at the given byte. */
  private static byte[] padding(int begin, int length) {
    return with(with(with(frame(STREAM, WHOLE, new byte[0]), 8, begin), 0, length), 4, WHOLE << 8);
  }

  @Test
  void paddingFillsExactlyTheRestOfATerm() {
    byte[] answer = frame(STREAM, WHOLE, answer());
    int rest = 960;
    int begin = Channels.TERM_BYTES - rest;
    assertThat(filled(padding(begin, rest))).isEqualTo(rest);
    assertThat(filled(with(answer, 8, begin), padding(0, rest - answer.length))).isEqualTo(rest);
    for (int length : new int[] {-1, 0, 32, rest - 32, rest + 32, Integer.MAX_VALUE}) {
      assertThat(filled(with(answer, 8, begin), padding(0, length))).as("%d", length).isNegative();
    }
    assertThat(passes(padding(begin, rest), answer)).as("padding in the middle").isFalse();
    byte[] last = with(answer, 8, Channels.TERM_BYTES - answer.length);
    assertThat(filled(last)).isEqualTo(answer.length);
    assertThat(passes(last, answer)).as("beyond the end of a term").isFalse();
  }

  @Test
  void framesThatDoNotFitTheirPacketDoNotPass() {
    byte[] frame = frame(STREAM, WHOLE, answer());
    for (int length : new int[] {-1, 1, 31, frame.length + 1, Integer.MAX_VALUE}) {
      assertThat(passes(with(frame, 0, length))).as("%d", length).isFalse();
    }
    assertThat(passes(with(frame, 0, 0))).as("a sign of life with a message").isFalse();
    assertThat(passes(frame, new byte[16])).as("a part of a header").isFalse();
  }
}
