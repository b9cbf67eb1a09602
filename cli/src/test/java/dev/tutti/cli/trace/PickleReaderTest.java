package dev.tutti.cli.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.runtime.record.PickleWriter;
import dev.tutti.runtime.view.FlightRecordReader;
import dev.tutti.runtime.view.JobRecords;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class PickleReaderTest {
  private static final int ROUNDS = 20_000;
  private static final byte[] OPCODES =
      HexFormat.of().parseHex("719472686a4e88894a4b4d47588c8a7d5d29287485868761657375");

  /** Names what is wrong in pickles given in hexadecimal digits. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "80 02 71 00 2e | it uses values that it does not contain", // names the top of nothing
        "80 02 2e | it uses values that it does not contain",
        "80 02 68 07 2e | it uses values that it does not contain", // an unknown name
        "80 02 4e 28 86 2e | it uses values that it does not contain",
        "80 02 4e 4e 28 30 | unsupported opcode 0x30",
        "80 02 74 2e | it ends a list that it does not start",
        "80 02 4e 4e 61 2e | it appends to a value that is no list",
        "80 02 5d 4e 4e 73 2e | it sets items of a value that is no dict",
        "80 02 7d 28 4e 75 2e | it sets items of a value that is no dict, or keys without values",
        "80 02 7d 5d 4e 73 2e | a key is a list or a dict",
        "80 02 8a 09 00 00 00 00 00 00 00 00 01 2e | a number needs more than 64 bits",
        "80 02 58 ff ff ff 7f 61 2e | it is cut off",
        "80 02 4b | it is cut off",
        "80 02 5d 71 00 68 00 61 2e | its values are nested too deeply", // a list in itself
      })
  void saysWhatIsWrong(String digits, String message) {
    byte[] pickle = HexFormat.ofDelimiter(" ").parseHex(digits);
    assertThatThrownBy(() -> PickleReader.read(pickle))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("not a pickle of plain values: " + message);
  }

  @Test
  void refusesListsThatGrowWithEachUse() {
    StringBuilder digits = new StringBuilder("80024e7100");
    for (int depth = 0; depth < 60; depth++) {
      digits.append("68006800867100");
    }
    assertThatThrownBy(() -> PickleReader.read(HexFormat.of().parseHex(digits + "2e")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageEndingWith("it repeats values too often");
  }

  /** Changes some bytes of a valid pickle: the result is a value, or refused, and small. */
  @Test
  void readsOrRefusesWhateverItGets() {
    Random random = new Random(7);
    byte[] valid = PickleWriter.write(record());
    assertThat(PickleReader.read(valid)).isEqualTo(record());
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
      byte[] changed = change(valid, random);
      long before = threads.getCurrentThreadAllocatedBytes();
      try {
        Object value = PickleReader.read(changed);
        if (value instanceof Map<?, ?> record) {
          FlightRecordReader.add(record, 0, JobRecords.empty());
        }
      } catch (IllegalArgumentException e) {
        assertThat(e).hasMessageStartingWith("not a ");
        refused++;
      }
      assertThat(threads.getCurrentThreadAllocatedBytes() - before)
          .as("round %d", round)
          .isLessThan(1_000_000);
    }
    assertThat(refused).isBetween(ROUNDS / 10, ROUNDS - ROUNDS / 100);
  }

  private static byte[] change(byte[] valid, Random random) {
    byte[] changed = Arrays.copyOf(valid, valid.length - random.nextInt(4) * random.nextInt(20));
    for (int i = random.nextInt(4); i >= 0; i--) {
      changed[random.nextInt(changed.length)] =
          (byte)
              (random.nextBoolean()
                  ? random.nextInt(256)
                  : OPCODES[random.nextInt(OPCODES.length)]);
    }
    return changed;
  }

  private static Map<String, Object> record() {
    List<Object> entries = new ArrayList<>();
    for (long sequence = 1; sequence <= 3; sequence++) {
      Map<String, Object> entry = new LinkedHashMap<>();
      entry.put("process_group", List.of("0", "default_pg"));
      entry.put("collective_seq_id", sequence << (20 * sequence - 20));
      entry.put("profiling_name", "gloo:all_reduce");
      entry.put("input_sizes", List.of(List.of(1L, 300L), List.of(70_000L)));
      entry.put("input_dtypes", List.of("Float"));
      entry.put("state", "completed");
      entry.put("time_created_ns", 1_700_000_000_000_000_000L + sequence);
      entry.put("retired", true);
      entry.put("is_p2p", false);
      entry.put("duration_ms", 1.5);
      entries.add(entry);
    }
    Map<String, Object> record = new LinkedHashMap<>();
    record.put("version", "2.10");
    record.put("pg_config", Map.of("0", Map.of("name", "0", "ranks", "[0, 1]")));
    record.put("entries", entries);
    return record;
  }
}
