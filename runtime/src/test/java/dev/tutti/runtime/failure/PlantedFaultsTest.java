package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import dev.tutti.runtime.model.PlantedFault;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests that going through all histories finds faults in what decides about failures. */
@Tag("full")
class PlantedFaultsTest {
  private static final PlantedFault.Place PLACE =
      new PlantedFault.Place("dev.tutti.runtime.failure", "JobExplorerTest");

  private static final PlantedFault.Place MEMBERS =
      new PlantedFault.Place("dev.tutti.runtime.membership", "ChangeExplorerTest");

  static Stream<Arguments> faults() {
    return Stream.of(
        arguments("JobState", "Append(delivered + 1, entry)", "Append(delivered + 2, entry)"),
        arguments("JobState", "isOwn ? known : known.adopting(found.finding())", "known"),
        arguments(
            "JobState",
            "isAsker ? Long.MAX_VALUE : now + nanos(times.finding()) + late",
            "Long.MAX_VALUE"),
        arguments("JobState", "now + nanos(times.answers()) + late", "Long.MAX_VALUE"),
        arguments(
            "JobState",
            "now + nanos(times.answers()) + late",
            "now + nanos(times.answer()) + late"),
        arguments(
            "JobState",
            "group.reportBy = now + nanos(times.answer())",
            "group.reportBy = Long.MAX_VALUE"),
        arguments("JobState", "group.phase = Phase.REPORTING;", "accept(event, Long.MAX_VALUE);"),
        arguments("JobState", "unheard = true; accept(own, Long.MAX_VALUE);", "unheard = true;"),
        arguments("JobState", "delivered = number;", ""),
        arguments("JobState", "Ask(known, true, isAsker", "Ask(known, isAsker, isAsker"),
        arguments(
            "JobState",
            "Ask(group.known, false, times.lateAnswer())",
            "Ask(group.known, false, times.answer())"),
        arguments(
            "JobState",
            "group.phase != Phase.ASKING || group.known == null",
            "group.known == null"),
        arguments(
            "JobState",
            "group.known = evidence; group.isCollected = true;",
            "group.isCollected = true;"),
        arguments("JobState", "group.limit() > now", "group.limit() >= now"),
        arguments("JobState", "outputs.add(new JobOutput.Fail(event)); } begin", "} begin"),
        arguments(
            "JobState",
            "settleAlone(group); } else if (group.found != null)",
            "} else if (group.found != null)"),
        arguments(
            "JobState",
            "toAppend.add(new LogEntry.Found(group.name, evidence.self(), Blame.find(evidence)));",
            "settle(group, evidence);"),
        arguments("JobState", "appending = false; read(number, entry);", "read(number, entry);"),
        arguments("JobState", "Missed() -> appending = false;", "Missed() -> unwritten();"),
        arguments("JobState", "(group.firstNumber == Long.MAX_VALUE && ", "("),
        arguments(
            "JobState",
            "fail(event.kind() == Kind.PEER_LOST ? event.asTimeout() : event);",
            "fail(event);"),
        arguments("JobState", "evidence.alone() && !group.hasAnswered", "false"),
        arguments(
            "JobState", "group.explainBy = now + nanos(times.answer());", "group.explainBy = now;"),
        arguments(
            "JobState",
            "GroupState group = groups.get(cause.group()); if (group == null ||"
                + " !isUnfailed(group))",
            "GroupState group = group(cause.group()); if (group.first != null || group.own !="
                + " null)"),
        arguments("JobState", "if (!group.isReached)", "if (group.isReached)"),
        arguments(
            "JobState",
            "case LogEntry.Asked(Question question) -> waits.say(question, null);",
            "case LogEntry.Asked(Question question) -> waits.leave(question.group());"),
        arguments("WaitState", "if (waiting.remove(question) != null)", "if (waiting.size() >= 0)"),
        arguments("JobState", "now + nanos(times.question())", "now + 2 * nanos(times.question())"),
        arguments("Blame", "case TIMEOUT -> event.isTimeoutOfOthers();", "case TIMEOUT -> false;"),
        arguments(
            "WaitsFor",
            "new Diagnosis(rank, \"rank \" + rank + \" does not answer\")",
            "new Diagnosis(rank + 1, \"\")"),
        arguments("WaitsFor", "progress.issued() < sequence", "progress.issued() <= sequence"),
        arguments("WaitsFor", "progress.issued() < sequence", "progress.issued() < 0"));
  }

  @ParameterizedTest
  @MethodSource("faults")
  void areFound(String type, String text, String fault, @TempDir Path folder) {
    Throwable thrown = catchThrowable(() -> PLACE.run("exploreSome", type, text, fault, folder));
    assertThat(thrown).isInstanceOf(InvocationTargetException.class);
    assertThat(thrown.getCause()).isInstanceOf(AssertionError.class);
  }

  @ParameterizedTest
  @MethodSource("dev.tutti.runtime.membership.MembershipFaults#all")
  void areFoundInWhatDecidesWhoIsAMember(
      String type, String text, String fault, @TempDir Path folder) {
    Throwable thrown = catchThrowable(() -> MEMBERS.run("exploreSome", type, text, fault, folder));
    assertThat(thrown).isInstanceOf(InvocationTargetException.class);
    assertThat(thrown.getCause()).isInstanceOf(AssertionError.class);
  }

  @Test
  void whatIsNotThereIsNotFound(@TempDir Path folder) throws Exception {
    PLACE.run("exploreFew", "JobState", "delivered = number;", "delivered = number;", folder);
    Path another = Files.createDirectory(folder.resolve("another"));
    MEMBERS.run("exploreFew", "Membership", "read = place;", "read = place;", another);
  }
}
