package dev.tutti.store.tcp;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Checks that the server answers as PyTorch's server did. */
class RecordedSessionTest {
  private final List<String> session = read();

  private static List<String> read() {
    try (InputStream in =
        RecordedSessionTest.class.getResourceAsStream("libtorch-2.10.0-session.txt")) {
      return new String(in.readAllBytes(), UTF_8)
          .lines()
          .filter(line -> !line.startsWith("#"))
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void answersEachRequestWithTheSameBytes() throws IOException {
    int replies = 0;
    try (TcpStoreServer server = new TcpStoreServer(0);
        RawClient client = RawClient.connect(server.port())) {
      for (String line : session) {
        String hex = line.substring(2);
        if (line.startsWith("C ")) {
          client.send(hex);
        } else {
          client.expect(hex);
          replies++;
        }
      }
      client.endOutput();
      client.expectEnd();
    }
    assertThat(replies).isEqualTo(18);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 7, 64, 1 << 20})
  void answersTheSameHoweverTheRequestsAreCut(int piece) throws IOException {
    byte[] requests = all("C ");
    byte[] replies = all("S ");
    try (TcpStoreServer server = new TcpStoreServer(0);
        RawClient client = RawClient.connect(server.port())) {
      for (int start = 0; start < requests.length; start += piece) {
        int length = Math.min(piece, requests.length - start);
        client.send(requests, start, length);
      }
      client.expect(HexFormat.ofDelimiter(" ").formatHex(replies));
      client.endOutput();
      client.expectEnd();
    }
  }

  private byte[] all(String side) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    session.stream()
        .filter(line -> line.startsWith(side))
        .forEach(line -> bytes.writeBytes(RawClient.hex(line.substring(2))));
    return bytes.toByteArray();
  }
}
