package dev.tutti.contracts.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.Capabilities;
import dev.tutti.Capabilities.Feature;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ProgramTest {
  private static final Capabilities ALL = Capabilities.ofVersion1(Feature.values());

  private static Program program(long seed) {
    return new ProgramGenerator(ALL, true, new int[] {1, 2, 3, 4, 5}, seed).generate();
  }

  @Test
  void aSeedMakesTheSameProgram() {
    assertThat(program(42)).isEqualTo(program(42)).isNotEqualTo(program(43));
  }

  @Test
  void textIsReadBack() {
    for (long seed = 0; seed < 200; seed++) {
      assertThat(Program.parse(program(seed).toString())).isEqualTo(program(seed));
    }
  }

  @Test
  void allKindsOfStepsComeUp() {
    Set<StepKind> kinds = new TreeSet<>();
    for (long seed = 0; seed < 100; seed++) {
      program(seed).steps().forEach(step -> kinds.add(step.kind()));
    }
    assertThat(kinds).containsExactly(StepKind.values());
  }

  /**
   * Operations with a common order run on one thread of each rank, so their order is that of the
   * steps.
   */
  @Test
  void collectivesOfAGroupHaveOneThread() {
    for (long seed = 0; seed < 200; seed++) {
      Map<List<Integer>, List<Integer>> threads = new HashMap<>();
      for (Step step : program(seed).steps()) {
        List<Integer> strand = List.of(step.group(), step.kind().isMessage() ? step.tag() : -1);
        assertThat(step.threads()).isEqualTo(threads.computeIfAbsent(strand, _ -> step.threads()));
      }
    }
  }

  /** The messages of a group follow the order of the steps, or each begins on an idle stream. */
  @Test
  void halfOfTheProgramsOfDevicesHaveOneThreadForTheMessagesOfAGroup() {
    int spread = 0;
    for (long seed = 0; seed < 200; seed++) {
      Program program = new ProgramGenerator(ALL, false, new int[] {2, 3, 4, 5}, seed).generate();
      if (program.groups().ids().stream().anyMatch(program::spreadsMessages)) {
        spread++;
      }
    }
    assertThat(spread).isBetween(20, 120);
  }

  @Test
  void messagesAreSpreadWhereARankHasThemOnTwoThreads() {
    Step sum = Step.of(0, StepKind.ALL_REDUCE, 2, 1).withThreads(List.of(1, 1));
    Step ring = Step.of(1, StepKind.RING, 2, 1);
    Step other = Step.of(2, StepKind.RING, 2, 1).withThreads(List.of(0, 1));
    Step elsewhere = other.inGroup(1);
    assertThat(new Program(1, 2, List.of(sum, ring, elsewhere)).spreadsMessages(0)).isFalse();
    Program program = new Program(1, 2, List.of(sum, ring, other, elsewhere));
    assertThat(program.spreadsMessages(0)).isTrue();
    assertThat(program.spreadsMessages(1)).isFalse();
  }

  @Test
  void nothingIsDoneWithAGroupBeforeItIsMadeOrAfterItsEnd() {
    for (long seed = 0; seed < 200; seed++) {
      Program program = program(seed);
      Set<Integer> open = new TreeSet<>(Set.of(0));
      for (Step step : program.steps()) {
        assertThat(open).as("groups before %s of\n%s", step, program).contains(step.group());
        if (step.kind() == StepKind.CLOSE) {
          open.remove(step.group());
        } else if (step.kind() == StepKind.SUBGROUP) {
          open.add(step.child());
        } else if (step.kind() == StepKind.SPLIT) {
          step.members().stream().filter(c -> c >= 0).forEach(c -> open.add(step.child() + c));
        }
      }
    }
  }

  @Test
  void groupsFollowSplitsAndSubgroups() {
    Step split =
        Step.of(0, StepKind.SPLIT, 4).withMembers(List.of(1, 0, 1, -1), 1).withPeers(1, 0, 0);
    Step subgroup = Step.of(1, StepKind.SUBGROUP, 4).inGroup(2).withMembers(List.of(1, 0), 3);
    assertThat(new Program(1, 4, List.of(split, subgroup)).groups().members())
        .isEqualTo(
            Map.of(0, List.of(0, 1, 2, 3), 1, List.of(1), 2, List.of(2, 0), 3, List.of(2, 0)));
  }
}
