package dev.tutti.gloo.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.gloo.transport.connect.NetworkId;
import dev.tutti.gloo.transport.connect.PeerAddress;
import dev.tutti.gloo.transport.connect.RankBlob;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class WireTest {
  private static final HexFormat HEX = HexFormat.of();

  private static PeerAddress address(String host, int port) throws Exception {
    return new PeerAddress(
        new InetSocketAddress(InetAddress.ofLiteral(host), port), -1, false, 0, 0);
  }

  private static String hex(PeerAddress address) {
    ByteBuffer out = ByteBuffer.allocate(PeerAddress.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    address.put(out);
    return HEX.formatHex(out.array());
  }

  @Test
  void messagesNameAddressesWithoutASlash() throws Exception {
    assertThat(PeerAddress.text(address("10.0.0.1", 7).socket())).isEqualTo("10.0.0.1 port 7");
    assertThat(PeerAddress.text(address("::1", 7).socket())).isEqualTo("0:0:0:0:0:0:0:1 port 7");
    assertThat(PeerAddress.text(new InetSocketAddress(InetAddress.getByName("localhost"), 7)))
        .doesNotContain("/")
        .endsWith(" port 7");
  }

  @Test
  void headersAreSixLittleEndianWords() {
    ByteBuffer out = ByteBuffer.allocate(96).order(ByteOrder.LITTLE_ENDIAN);
    Header.put(out, Header.SEND_UNBOUND_BUFFER, Slot.ALL_REDUCE.of(1), 12, 0);
    Header.put(out, Header.NOTIFY_RECV_READY, 7, 12, 0);
    assertThat(HEX.formatHex(out.array()))
        .isEqualTo(
            "3c00000000000000"
                + "0100000000000000"
                + "0000000100000004"
                + "0000000000000000"
                + "0c00000000000000"
                + "0000000000000000"
                + "3000000000000000"
                + "0300000000000000"
                + "0700000000000000"
                + "0000000000000000"
                + "0c00000000000000"
                + "0000000000000000");
  }

  @Test
  void slotsHoldKindAndUnsignedTag() {
    assertThat(Slot.ALL_REDUCE.of(1)).isEqualTo(0x0400_0000_0100_0000L);
    assertThat(Slot.GATHER.of(0)).isEqualTo(0x0100_0000_0000_0000L);
    assertThat(Slot.ALL_TO_ALL.of(-1)).isEqualTo(0x08ff_ffff_ff00_0000L);
    assertThat(Arrays.stream(Slot.values()).map(slot -> slot.of(0) >>> 56))
        .containsExactly(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 0x54L);
  }

  @Test
  void blobIsThatOfALiveRankOfPyTorch() throws Exception {
    String published =
        "0200000000000000"
            + "766d"
            + "8800000000000000"
            + "02008ce97f000001"
            + "00".repeat(120)
            + "ffffffffffffffff"
            + "0000000000000000"
            + "0100000000000000";
    RankBlob blob = RankBlob.read(HEX.parseHex(published), 2);
    assertThat(blob.hostname()).isEqualTo("vm");
    assertThat(blob.address().socket())
        .isEqualTo(new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0x8ce9));
    assertThat(blob.address().sequence()).isEqualTo(-1);
    assertThat(blob.address().tutti()).isFalse();
    assertThat(blob.identifiers()).containsExactly(0, 1);
    assertThat(HEX.formatHex(blob.toBytes())).isEqualTo(published);
  }

  @Test
  void blobOfTuttiDiffersOnlyInBytesThatGlooIgnores() throws Exception {
    InetSocketAddress socket = new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 0x8ce9);
    PeerAddress tutti = new PeerAddress(socket, -1, true, 0x123456789L, 0);
    String hex = hex(tutti);
    String plain = hex(new PeerAddress(socket, -1, false, 0, 0));
    assertThat(hex.substring(0, 2 * 104)).isEqualTo(plain.substring(0, 2 * 104));
    assertThat(hex.substring(2 * 128)).isEqualTo(plain.substring(2 * 128));
    assertThat(PeerAddress.read(ByteBuffer.wrap(HEX.parseHex(hex)))).isEqualTo(tutti);
  }

  private static RankBlob blob(String hostname, long network) throws Exception {
    InetSocketAddress socket = new InetSocketAddress(InetAddress.ofLiteral("127.0.0.1"), 5);
    return new RankBlob(hostname, new PeerAddress(socket, -1, true, network, 0), new long[0]);
  }

  @Test
  void ranksOfOneNetworkReachEachOthersLoopback() throws Exception {
    assertThat(blob("a", 7).isElsewhere(blob("b", 7))).isFalse();
    assertThat(blob("a", 7).isElsewhere(blob("a", 8))).isTrue();
    assertThat(blob("a", 7).isElsewhere(blob("a", NetworkId.UNKNOWN))).isFalse();
    assertThat(blob("a", 7).isElsewhere(blob("b", NetworkId.UNKNOWN))).isTrue();
    assertThat(NetworkId.own()).isEqualTo(NetworkId.own());
  }

  @Test
  void addressesOfVersion6KeepScope() throws Exception {
    PeerAddress loopback = address("::1", 0x1234);
    assertThat(hex(loopback))
        .startsWith("0a001234" + "00000000" + "00".repeat(15) + "01" + "00000000");
    assertThat(PeerAddress.read(ByteBuffer.wrap(HEX.parseHex(hex(loopback))))).isEqualTo(loopback);
  }

  @Test
  void greaterAddressConnects() throws Exception {
    assertThat(address("10.0.0.200", 1).compareRole(address("10.0.0.3", 9), 0, 1)).isPositive();
    // 46263 is b4b7 and compares as b7b4; 46000 is b3b0 and compares as b0b3.
    assertThat(address("::1", 46263).compareRole(address("::1", 46000), 0, 1)).isPositive();
    // 0x0102 compares as 0x0201, 0x0200 as 0x0002.
    assertThat(address("127.0.0.1", 0x0102).compareRole(address("127.0.0.1", 0x0200), 0, 1))
        .isPositive();
    assertThat(address("127.0.0.1", 0x0200).compareRole(address("127.0.0.1", 0x0102), 1, 0))
        .isNegative();
    assertThat(address("127.0.0.1", 5).compareRole(address("127.0.0.1", 5), 3, 2)).isPositive();
    assertThat(address("127.0.0.1", 5).compareRole(address("127.0.0.1", 5), 2, 2)).isZero();
    assertThatThrownBy(() -> address("127.0.0.1", 5).compareRole(address("::1", 5), 0, 1))
        .hasMessageContaining("different address families");
  }

  @Test
  void brokenBlobsAreRefused() throws Exception {
    byte[] good = new RankBlob("h", address("127.0.0.1", 5), new long[] {0, 1}).toBytes();
    assertThatThrownBy(() -> RankBlob.read(Arrays.copyOf(good, 5), 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("only 5 bytes");
    assertThatThrownBy(() -> RankBlob.read(Arrays.copyOf(good, 60), 2))
        .hasMessageContaining("address of 136 bytes");
    assertThatThrownBy(() -> RankBlob.read(good, 3))
        .hasMessageContaining("2 identifiers, but 3 expected")
        .hasMessageContaining("all ranks must have the same WORLD_SIZE, TORCH_GLOO_LAZY_INIT and");
    assertThatThrownBy(() -> RankBlob.read(good, 0)).hasMessageContaining("TORCH_GLOO_LAZY_INIT");
    byte[] huge = good.clone();
    huge[7] = 0x7f;
    assertThatThrownBy(() -> RankBlob.read(huge, 2)).hasMessageContaining("host name of");
    byte[] family = good.clone();
    family[17] = 99;
    assertThatThrownBy(() -> RankBlob.read(family, 2)).hasMessageContaining("address family 99");
  }
}
