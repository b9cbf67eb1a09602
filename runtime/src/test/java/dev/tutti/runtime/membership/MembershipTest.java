package dev.tutti.runtime.membership;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Store;
import dev.tutti.store.HashStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Tests that random logs, most of whose entries do not count, are read as they are meant. */
class MembershipTest {
  private static final int MEMBERS = 3;
  private static final int LOGS = 5_000;
  private static final int ENTRIES = 12;
  private static final Rules ANY = new Rules(1, 9, 0, 9, 1000);

  @Test
  void logsAreReadAsTheyAreMeant() {
    readLogs();
  }

  @Test
  void whoCameAfterAChangeBeganIsNew() {
    Newcomers newcomers = new Newcomers();
    List<MembershipEntry> log =
        List.of(
            new MembershipEntry.Waiting("a"),
            new MembershipEntry.Waiting("b"),
            new MembershipEntry.Change(0, 0, MEMBERS, ANY),
            new MembershipEntry.Waiting("c"),
            new MembershipEntry.Generation(3, 0, 0, new ChangePlan(new TreeMap<>(), List.of("a"))),
            new MembershipEntry.Waiting("d"),
            new MembershipEntry.Withdrawn("c"));
    List<Integer> counts = new ArrayList<>();
    for (int place = 1; place <= log.size(); place++) {
      newcomers.read(place, log.get(place - 1).encode());
      counts.add(newcomers.count(place < 5 ? 0 : 5));
    }
    assertThat(counts).containsExactly(1, 2, 2, 3, 1, 2, 1);
    assertThat(newcomers.count(0)).isZero();
  }

  @Test
  void whatIsKeptOfALogIsAllThatMattersLater() {
    Membership all = new Membership(MEMBERS);
    List<MembershipEntry> log =
        List.of(
            new MembershipEntry.Waiting("a"),
            new MembershipEntry.Waiting("b"),
            new MembershipEntry.Change(0, 0, MEMBERS, ANY),
            new MembershipEntry.Generation(
                3, 0, 0, new ChangePlan(new TreeMap<>(Map.of(1, "it is lost")), List.of("b"))));
    for (int place = 1; place <= log.size(); place++) {
      assertThat(all.take(new ChangeInput.Read(place, log.get(place - 1), place == 1 ? 2 : -1)))
          .isTrue();
    }
    Membership kept = Membership.decode(all.encode());
    assertThat(kept.read()).isEqualTo(4);
    assertThat(kept.generation()).isEqualTo(4);
    assertThat(kept.members()).containsExactly(0, 2, 3);
    assertThat(kept.waiting()).containsExactly("a");
    assertThat(kept.newcomers()).isZero();
    assertThat(kept.numberOf("b")).isEqualTo(3);
    assertThat(kept.whyLeftOut(1)).isEqualTo("it is lost");
    assertThat(kept.isLost(2)).isTrue();
    assertThat(kept.isGone(1)).isTrue();
    assertThat(kept.isGone(4)).isFalse();
    assertThat(kept.first()).isEqualTo(MEMBERS);
    assertThat(kept.encode()).isEqualTo(all.encode());
  }

  @Test
  void theKeptStateDoesNotGrow() {
    Membership all = new Membership(MEMBERS);
    int longest = 0;
    for (int round = 0; round < 200; round++) {
      long place = all.read();
      String name = "name" + round;
      int gone = all.members().getLast();
      ChangePlan plan = new ChangePlan(new TreeMap<>(Map.of(gone, "it left")), List.of(name));
      for (MembershipEntry entry :
          List.of(
              new MembershipEntry.Waiting(name),
              new MembershipEntry.Change(all.generation(), 0, MEMBERS, ANY),
              new MembershipEntry.Generation(place + 2, all.generation(), 0, plan))) {
        assertThat(all.take(new ChangeInput.Read(all.read() + 1, entry, -1))).isTrue();
      }
      assertThat(all.members()).containsExactly(0, 1, MEMBERS + round);
      all = Membership.decode(all.encode());
      longest = Math.max(longest, all.encode().length());
    }
    assertThat(longest).isLessThan(500);
  }

  @Test
  void aLogBeginsNoEarlierThanBefore() {
    Store store = new HashStore();
    assertThat(LogStart.read(store).first()).isEqualTo(1);
    Membership early = new Membership(MEMBERS);
    Membership late = new Membership(MEMBERS);
    for (long place = 1; place <= 5; place++) {
      assertThat(late.take(new ChangeInput.Read(place, null, -1))).isTrue();
    }
    assertThat(LogStart.after(late).write(store)).isTrue();
    assertThat(LogStart.after(early).write(store)).isFalse();
    assertThat(LogStart.after(late).write(store)).isTrue();
    assertThat(LogStart.read(store).first()).isEqualTo(6);
    assertThat(LogStart.read(store).members().members()).containsExactly(0, 1, 2);
  }

  static void readLogs() {
    for (long seed = 0; seed < LOGS; seed++) {
      new Log(seed).read();
    }
  }

  /** A log that grows at random. */
  private static final class Log {
    private final SplittableRandom random;
    private final List<@Nullable MembershipEntry> log = new ArrayList<>();

    Log(long seed) {
      random = new SplittableRandom(seed);
    }

    void read() {
      Membership membership = new Membership(MEMBERS);
      for (int place = 1; place <= ENTRIES; place++) {
        log.add(entry());
        assertThat(membership.take(new ChangeInput.Read(place, log.getLast(), -1))).isTrue();
        assertThat(membership.take(new ChangeInput.Read(place, null, -1))).isFalse();
        Chain last = Chain.of(log, MEMBERS).getLast();
        assertThat(membership.generation()).as("%s", log).isEqualTo(last.generation());
        assertThat(membership.members().stream().map(String::valueOf))
            .as("%s", log)
            .containsExactlyInAnyOrderElementsOf(last.members());
      }
    }

    private @Nullable MembershipEntry entry() {
      long change = place(MembershipEntry.Change.class);
      long base = random.nextInt(8) == 0 ? 0 : place(MembershipEntry.Generation.class);
      String name = "j" + random.nextInt(2);
      return switch (random.nextInt(8)) {
        case 0 -> new MembershipEntry.Waiting(name);
        case 1 -> random.nextInt(3) == 0 ? new MembershipEntry.Withdrawn(name) : null;
        case 2, 3, 4 -> new MembershipEntry.Change(base, 0, MEMBERS, ANY);
        case 5 -> new MembershipEntry.Abandoned(change, 0, "");
        default -> new MembershipEntry.Generation(change, base, 0, plan(name));
      };
    }

    private ChangePlan plan(String name) {
      TreeMap<Integer, String> leftOut = new TreeMap<>();
      if (random.nextInt(4) == 0) {
        leftOut.put(1 + random.nextInt(MEMBERS - 1), "");
      }
      return new ChangePlan(leftOut, random.nextInt(3) == 0 ? List.of(name) : List.of());
    }

    /** Returns the place of some entry of a kind, most often the last one; 0 if there is none. */
    private long place(Class<?> kind) {
      for (int place = log.size(); place > 0; place--) {
        if (kind.isInstance(log.get(place - 1)) && random.nextInt(4) > 0) {
          return place;
        }
      }
      return 0;
    }
  }
}
