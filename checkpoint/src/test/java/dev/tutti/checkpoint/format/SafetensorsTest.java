package dev.tutti.checkpoint.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.DType;
import dev.tutti.checkpoint.format.Safetensors.Entry;
import dev.tutti.contracts.TestTier;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests that headers are those of the safetensors format, and that no other header is read. */
class SafetensorsTest {
  private static final int MUTATIONS =
      Integer.getInteger("tutti.fuzz", TestTier.isFast() ? 20_000 : 200_000);

  /** The number of bytes of the data of {@link #ENTRIES}. */
  private static final int DATA_BYTES = 42;

  private static final List<Entry> ENTRIES =
      List.of(
          new Entry("b", DType.FLOAT32, Shape.of(2, 3)),
          new Entry("a", DType.BFLOAT16, Shape.of(5)),
          new Entry("scalar", DType.INT64, Shape.of()),
          new Entry("empty", DType.BOOL, Shape.of(0, 4)));

  private static List<StoredTensor> read(String json, long dataBytes) throws MalformedException {
    ByteBuffer bytes = ByteBuffer.wrap(json.getBytes(StandardCharsets.UTF_8));
    return Safetensors.tensors(bytes, Safetensors.LENGTH_BYTES + bytes.remaining() + dataBytes);
  }

  @Test
  void whatIsWrittenIsRead() throws Exception {
    List<Entry> ordered = Safetensors.ordered(ENTRIES);
    assertThat(ordered).extracting(Entry::name).containsExactly("scalar", "b", "a", "empty");
    ByteBuffer header = Safetensors.header(ordered, Map.of("format", "pt"));
    assertThat(header.remaining()).isEqualTo(4096);
    long fileLength = 4096 + 8 + 24 + 10;
    int length = Safetensors.headerLength(header.slice(0, 8), fileLength);
    assertThat(length).isEqualTo(4088);
    List<StoredTensor> tensors = Safetensors.tensors(header.slice(8, length), fileLength);
    assertThat(tensors).extracting(StoredTensor::name).containsExactly("scalar", "b", "a", "empty");
    assertThat(tensors).extracting(StoredTensor::start).containsExactly(4096L, 4104L, 4128L, 4138L);
    assertThat(tensors.get(1).dtype()).hasValue(DType.FLOAT32);
    assertThat(tensors.get(1).shape()).isEqualTo(Shape.of(2, 3));
  }

  /** The bytes are those that Python's safetensors 0.7.0 writes, but for more spaces. */
  @Test
  void theTextIsThatOfTheFormat() {
    ByteBuffer header =
        Safetensors.header(List.of(new Entry("t", DType.FLOAT16, Shape.of(2, 1))), Map.of());
    assertThat(header.order(ByteOrder.LITTLE_ENDIAN).getLong(0)).isEqualTo(4088);
    assertThat(StandardCharsets.UTF_8.decode(header.slice(8, 4088)).toString().trim())
        .isEqualTo("{\"t\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}");
  }

  @Test
  void typesThatNoTensorHasAreRead() throws Exception {
    List<StoredTensor> tensors =
        read("{\"a\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4);
    assertThat(tensors.getFirst().dtype()).isEmpty();
    assertThat(tensors.getFirst().type()).isEqualTo("U16");
    assertThat(read("{\"a\":{\"dtype\":\"F4\",\"shape\":[6],\"data_offsets\":[0,3]}}", 3))
        .hasSize(1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "[]|0|the header does not begin with {",
        "{}|1|the data end at byte 10 of the file, which has 11",
        "{'a':1}|0|tensor 'a' has other members than dtype, shape and data_offsets",
        "{'a':{'dtype':'F32','shape':[1],'data_offsets':[0,4],'x':0}}|4|tensor 'a' has other"
            + " members",
        "{'a':{'dtype':'F33','shape':[1],'data_offsets':[0,4]}}|4|unknown element type 'F33'",
        "{'a':{'dtype':'F32','shape':[-1],'data_offsets':[0,4]}}|4|has a shape that is not a list",
        "{'a':{'dtype':'F32','shape':[1.0],'data_offsets':[0,4]}}|4|has a shape that is not a list",
        "{'a':{'dtype':'F32','shape':1,'data_offsets':[0,4]}}|4|has a shape that is not a list",
        "{'a':{'dtype':'F32','shape':[2],'data_offsets':[0,4]}}|4|shape [2] cannot have 4 bytes",
        "{'a':{'dtype':'F4','shape':[1],'data_offsets':[0,1]}}|1|shape [1] cannot have 1 bytes",
        "{'a':{'dtype':'F32','shape':[1],'data_offsets':[4,0]}}|4|has the range [4, 0]",
        "{'a':{'dtype':'F32','shape':[1],'data_offsets':[0]}}|4|has the range [0]",
        "{'a':{'dtype':'F32','shape':[1],'data_offsets':[4,8]}}|8|not at 62, where those before it"
            + " end",
        "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]},"
            + "'b':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}}|2|not at ",
        "{'a':{'dtype':'F32','shape':[4611686018427387904,4],'data_offsets':[0,0]}}|0|too many"
            + " elements",
        "{'a':{'dtype':'U8','shape':[0],'data_offsets':[0,0]},'a':{}}|0|the key \"a\" for the",
        "{'__metadata__':{'a':1}}|0|__metadata__ has values other than texts",
      })
  void otherHeadersAreRefused(String json, long dataBytes, String text) {
    assertThatThrownBy(() -> read(json.replace('\'', '"'), dataBytes))
        .isInstanceOf(MalformedException.class)
        .hasMessageContaining(text);
  }

  @Test
  void lengthsThatNoFileHasAreRefused() {
    assertThatThrownBy(() -> Safetensors.headerLength(length(-1), 100))
        .hasMessageContaining("a header of 18446744073709551615 bytes, but 100000000 are the most");
    assertThatThrownBy(() -> Safetensors.headerLength(length(100_000_001), Long.MAX_VALUE))
        .hasMessageContaining("a header of 100000001 bytes, but 100000000 are the most");
    assertThatThrownBy(() -> Safetensors.headerLength(length(93), 100))
        .hasMessage("a header of 93 bytes in a file of 100");
  }

  private static ByteBuffer length(long value) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).flip();
  }

  /**
   * Whatever a header says, also of its length, what is read of it lies within the file, nothing
   * else is thrown, and no more is allocated than a file of this length can need.
   */
  @Test
  void changedHeadersAreRefusedOrStayWithinTheFile() {
    ByteBuffer header = Safetensors.header(Safetensors.ordered(ENTRIES), Map.of("format", "pt"));
    byte[] good = new byte[400];
    header.get(0, good);
    ByteBuffer.wrap(good)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(0, good.length - Safetensors.LENGTH_BYTES);
    ThreadMXBean memory = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Random random = new Random(Long.getLong("tutti.fuzzSeed", 1));
    int read = 0;
    long most = 0;
    for (int i = 0; i < MUTATIONS; i++) {
      byte[] bad = changed(good, random);
      byte[] file = Arrays.copyOf(bad, Math.max(bad.length, Safetensors.LENGTH_BYTES) + DATA_BYTES);
      long before = memory.getCurrentThreadAllocatedBytes();
      try {
        int length =
            Safetensors.headerLength(
                ByteBuffer.wrap(file, 0, Safetensors.LENGTH_BYTES), file.length);
        long end = Safetensors.LENGTH_BYTES + (long) length;
        ByteBuffer json = ByteBuffer.wrap(file, Safetensors.LENGTH_BYTES, length);
        for (StoredTensor tensor : Safetensors.tensors(json, file.length)) {
          assertThat(tensor.start()).isEqualTo(end);
          end += tensor.byteSize();
        }
        assertThat(end).isEqualTo(file.length);
        read++;
      } catch (MalformedException e) {
        assertThat(e.getMessage()).isNotEmpty();
      }
      most = Math.max(most, memory.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(read).isBetween(1, MUTATIONS / 2);
    assertThat(most).isLessThan(1 << 20);
  }

  private static byte[] changed(byte[] good, Random random) {
    byte[] bad = good.clone();
    for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
      int at = random.nextInt(bad.length);
      switch (random.nextInt(4)) {
        case 0 -> bad[at] ^= (byte) (1 << random.nextInt(8));
        case 1 -> bad[at] = (byte) "{}[],:\"0123456789-.eE\\ ".charAt(random.nextInt(23));
        case 2 -> {
          int from = random.nextInt(bad.length);
          int count = random.nextInt(Math.min(20, bad.length - Math.max(at, from)) + 1);
          System.arraycopy(bad, from, bad, at, Math.min(count, bad.length - Math.max(at, from)));
        }
        default -> bad = Arrays.copyOf(bad, 1 + random.nextInt(bad.length + 8));
      }
    }
    return bad;
  }
}
