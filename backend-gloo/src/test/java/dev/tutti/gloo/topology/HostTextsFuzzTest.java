package dev.tutti.gloo.topology;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.gloo.shm.ShmFile;
import dev.tutti.gloo.shm.StaleFiles;
import dev.tutti.spi.Time;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Reads damaged and random texts of the kinds that ranks use to agree on shared memory. 100,000 by
 * default; {@code -Dtutti.fuzz=10000000} makes them 10 million.
 */
class HostTextsFuzzTest {
  private static final int INPUTS = Integer.getInteger("tutti.fuzz", 100_000);
  private static final int WARM_UP = 1000;
  private static final long MOST_ALLOCATED = 512 * 1024;
  private static final int SIZE = 5;
  private static final int LARGE = 200_000;
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static final String FILE = StaleFiles.newName();
  private static final List<byte[]> GOOD =
      List.of(
          new HostOffer(FILE, 1 << 24, true).toBytes(),
          new HostOffer("", 0, false).toBytes(),
          new HostInvitation("0123456789abcdef " + FILE, new int[] {1, 2, 4}).toBytes(),
          HostResult.nothing().toBytes(),
          HostResult.refuses("rank 1: no room").toBytes(),
          HostResult.follows(0).toBytes(),
          HostResult.leads(new int[] {1, 3}).toBytes());
  private static final List<String> WORDS =
      List.of(
          "leads ", "follows ", "!", "-", " ", ",", "1,", "99999999999", "two-level", "../", "\0");

  @Test
  @Timeout(900)
  void refusesOrReadsButNeverBreaks() {
    SplittableRandom random = new SplittableRandom(20_261_121);
    long read = 0;
    long refused = 0;
    for (int i = 0; i < INPUTS; i++) {
      byte[] bytes = input(random, i);
      long allocated = THREADS.getCurrentThreadAllocatedBytes();
      for (int kind = 0; kind < 3; kind++) {
        try {
          read(kind, bytes);
          read++;
        } catch (IllegalArgumentException e) {
          refused++;
        }
      }
      allocated = THREADS.getCurrentThreadAllocatedBytes() - allocated;
      if (allocated > MOST_ALLOCATED && i > WARM_UP) {
        throw new AssertionError("input " + i + " allocated " + allocated + " bytes");
      }
    }
    assertThat(read).isGreaterThan(INPUTS / 10);
    assertThat(refused).isGreaterThan(INPUTS);
  }

  private static byte[] input(SplittableRandom random, int number) {
    byte[] bytes = GOOD.get(number % GOOD.size()).clone();
    for (int turns = random.nextInt(3); turns > 0; turns--) {
      int at = bytes.length == 0 ? 0 : random.nextInt(bytes.length);
      switch (random.nextInt(5)) {
        case 0 -> bytes = Arrays.copyOf(bytes, at);
        case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + random.nextInt(40));
        case 2 -> bytes = inserted(bytes, at, WORDS.get(random.nextInt(WORDS.size())));
        case 3 -> bytes = random.nextInt(100) == 0 ? new byte[LARGE] : bytes;
        default -> {
          if (bytes.length > 0) {
            bytes[at] = (byte) random.nextInt();
          }
        }
      }
    }
    return bytes;
  }

  private static byte[] inserted(byte[] bytes, int at, String word) {
    String text = new String(bytes, StandardCharsets.ISO_8859_1);
    return (text.substring(0, at) + word + text.substring(at))
        .getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Parses a text as one of its kinds and checks the result. */
  private static void read(int kind, byte[] bytes) {
    if (kind == 0) {
      HostOffer offer = HostOffer.read(bytes);
      assertThat(offer.probe().isEmpty() || StaleFiles.isName(offer.probe())).isTrue();
    } else if (kind == 1) {
      HostInvitation invitation = HostInvitation.read(bytes, 1, SIZE);
      assertRises(invitation.members());
    } else {
      HostResult result = HostResult.read(bytes, 1, SIZE);
      if (result.members().length > 0) {
        assertRises(result.members());
      }
      assertThat(result.reason().length()).isLessThanOrEqualTo(1000);
    }
  }

  private static void assertRises(int[] members) {
    if (members[0] != 1 || members[members.length - 1] >= SIZE) {
      throw new AssertionError(Arrays.toString(members));
    }
    for (int i = 1; i < members.length; i++) {
      assertThat(members[i]).isGreaterThan(members[i - 1]);
    }
  }

  @Test
  void whatIsPublishedIsReadAgain() {
    assertThat(HostOffer.read(GOOD.get(0))).isEqualTo(new HostOffer(FILE, 1 << 24, true));
    HostInvitation invitation = HostInvitation.read(GOOD.get(2), 1, SIZE);
    assertThat(invitation.memory()).isEqualTo("0123456789abcdef " + FILE);
    assertThat(invitation.placeOf(4)).isEqualTo(2);
    assertThat(invitation.placeOf(3)).isEqualTo(-1);
    assertThat(HostResult.read(GOOD.get(4), 1, SIZE).reason()).isEqualTo("rank 1: no room");
    assertThat(HostResult.read(GOOD.get(5), 1, SIZE).follows()).isTrue();
    assertThat(HostResult.read(GOOD.get(6), 1, SIZE).members()).containsExactly(1, 3);
    HostResult[] results = {
      HostResult.leads(new int[] {0, 2}), HostResult.nothing(), HostResult.follows(0)
    };
    assertThat(HostResult.leaders(results)).containsExactly(0, 1, 0);
  }

  @Test
  void aReasonCannotBreakTheLog() {
    HostResult result = HostResult.read("!a\nb\u001b[0m".getBytes(StandardCharsets.UTF_8), 1, SIZE);
    assertThat(result.reason()).isEqualTo("a\\nb\\x1b[0m");
    assertThat(HostResult.refuses("x".repeat(LARGE)).reason()).hasSize(1000);
  }

  @Test
  void whoIsLedMustFollow() {
    HostResult[] results = {HostResult.leads(new int[] {0, 1}), HostResult.nothing()};
    assertThatIllegalArgumentException()
        .isThrownBy(() -> HostResult.leaders(results))
        .withMessage("rank 0 leads rank 1, which does not follow it");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "0123456789abcdef",
        "0123456789abcdef /",
        "0123456789abcdef ../../etc/passwd",
        "0123456789abcdef tutti-1-1-\0",
        "0123456789abcdex tutti-1-1-0123456789abcdef"
      })
  void onlyFilesOfRanksAreOpened(String description, @TempDir Path directory) {
    assertThatThrownBy(() -> ShmFile.open(directory, description, 4096, 1, Time.SYSTEM))
        .isInstanceOf(IOException.class)
        .hasMessage("not a description of shared memory");
  }
}
