package dev.tutti.checkpoint.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Tests that a manifest is read as it was written, or not at all. */
class ManifestTest {
  private static Manifest manifest(String file) {
    return new Manifest(
        12,
        1,
        List.of(new FileRecord(file, FileRecord.PIECE + 5L, List.of(-1, 7))),
        List.of(
            new StoredRange("m", "w \"é\"", DType.FLOAT16, Shape.of(2, 3), 1, 4, 0, 4096),
            new StoredRange("m", "e", DType.INT64, Shape.of(0), 0, 0, 0, 4104)),
        new TreeMap<>(Map.of("o", Map.of("step", 12L))),
        new TreeMap<>(Map.of("sampler", List.of("\n"))));
  }

  private static String text(byte[] bytes) throws MalformedException {
    return new String(Manifest.decode(bytes).encode(), StandardCharsets.UTF_8);
  }

  @Test
  void whatIsWrittenIsRead() throws Exception {
    Manifest joined = Manifest.join(List.of(manifest("a"), manifest("b")));
    assertThat(joined.ranks()).isEqualTo(2);
    assertThat(joined.ranges()).extracting(StoredRange::file).containsExactly(0, 0, 1, 1);
    assertThat(joined.values().get("sampler")).containsExactly("\n", "\n");
    byte[] bytes = joined.encode();
    Manifest read = Manifest.decode(bytes);
    assertThat(read.files()).isEqualTo(joined.files());
    assertThat(read.counters()).isEqualTo(joined.counters());
    assertThat(read.values()).isEqualTo(joined.values());
    assertThat(read.ranges()).usingRecursiveComparison().isEqualTo(joined.ranges());
    assertThat(text(bytes)).isEqualTo(new String(bytes, StandardCharsets.UTF_8));
  }

  @Test
  void eachChangedBitIsFound() {
    byte[] bytes = manifest("a").encode();
    for (int bit = 0; bit < 8 * bytes.length; bit++) {
      byte[] bad = bytes.clone();
      bad[bit / 8] ^= (byte) (1 << bit % 8);
      assertThatThrownBy(() -> Manifest.decode(bad)).isInstanceOf(MalformedException.class);
    }
    for (int length = 0; length < bytes.length; length++) {
      byte[] bad = Arrays.copyOf(bytes, length);
      assertThatThrownBy(() -> Manifest.decode(bad)).isInstanceOf(MalformedException.class);
    }
  }

  @Test
  void whatPointsOutsideIsRefused() {
    for (String name : List.of("../a", "/a", ".lock", "", "a\0", "\u00e9")) {
      assertThatThrownBy(() -> Manifest.decode(manifest(name).encode()))
          .hasMessage("a file is named '" + name + "'");
    }
    Manifest good = manifest("a");
    StoredRange outside =
        new StoredRange("m", "w", DType.FLOAT16, Shape.of(9), 0, 9, 0, FileRecord.PIECE);
    assertThatThrownBy(
            () ->
                Manifest.decode(
                    new Manifest(
                            1, 1, good.files(), List.of(outside), good.counters(), good.values())
                        .encode()))
        .hasMessage("a range of tensor 'w' is outside its file");
  }

  @Test
  void whatIsOutsideATensorIsRefused() {
    for (String bad : List.of("[2,-3]", "[4611686018427387904,4]", "[-1,-6]")) {
      assertThatThrownBy(() -> Manifest.decode(replaced("[2,3]", bad)))
          .hasMessage("tensor 'w \"é\"' has the shape " + bad.replace(",", ", "));
    }
    assertThatThrownBy(() -> Manifest.decode(replaced("[2,3]", "[2,2]")))
        .hasMessage("4 elements of tensor 'w \"é\"' from 1 on are outside its shape [2, 2]");
  }

  @Test
  void aFaultIsDescribedInFewCharacters() {
    String text = "x".repeat(100_000);
    assertThatThrownBy(
            () -> Manifest.decode(replaced("\"ranks\":1,", "\"ranks\":\"" + text + "\",")))
        .hasMessage(("its member 'ranks' is not a Long: " + text).substring(0, 300) + "...");
  }

  /** Returns a manifest with a part of its text replaced, and the digest of that. */
  private static byte[] replaced(String old, String other) {
    String text = new String(manifest("a").encode(), StandardCharsets.UTF_8);
    assertThat(text).containsOnlyOnce(old);
    String digested = text.substring(0, text.indexOf(",\"sha256\"")).replace(old, other);
    String digest = Sha256.of(digested.getBytes(StandardCharsets.UTF_8));
    return (digested + ",\"sha256\":\"" + digest + "\"}\n").getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void numbersThatFitNowhereAreRefused() {
    assertThatThrownBy(() -> Manifest.decode(replaced("\"ranks\":1,", "\"ranks\":4294967297,")))
        .hasMessage("its member 'ranks' is too large: 4294967297");
    assertThatThrownBy(
            () ->
                Manifest.decode(
                    replaced("\"file\":0,\"start\":4096", "\"file\":4294967296,\"start\":4096")))
        .hasMessage("its member 'file' is too large: 4294967296");
    assertThatThrownBy(() -> Manifest.decode(replaced("\"start\":4096", "\"start\":4097")))
        .hasMessage("a range of tensor 'w \"é\"' starts at byte 4097");
  }
}
