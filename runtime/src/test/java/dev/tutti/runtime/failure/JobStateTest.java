package dev.tutti.runtime.failure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import dev.tutti.OpType;
import dev.tutti.runtime.failure.FailureEvent.Kind;
import dev.tutti.runtime.failure.JobOutput.Adopt;
import dev.tutti.runtime.failure.JobOutput.Append;
import dev.tutti.runtime.failure.JobOutput.Ask;
import dev.tutti.runtime.failure.JobOutput.Explain;
import dev.tutti.runtime.failure.JobOutput.Fail;
import dev.tutti.runtime.failure.JobOutput.Find;
import dev.tutti.runtime.failure.JobOutput.LookUp;
import dev.tutti.runtime.failure.JobOutput.Probe;
import dev.tutti.runtime.failure.JobOutput.Settle;
import dev.tutti.runtime.failure.JobOutput.Tell;
import dev.tutti.runtime.operation.RankProgress;
import dev.tutti.runtime.operation.RankProgress.Issued;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Tests what rank 1 of three does about failures, with a server of the store that is rank 0. */
class JobStateTest {
  private static final AnswerTimes TIMES = new AnswerTimes(Duration.ofSeconds(1));

  private JobState state = new JobState(1, 0, TIMES, 0);
  private final List<JobOutput> outputs = new ArrayList<>();
  private Duration now = Duration.ZERO;
  private boolean paused;

  private JobStateTest offer(JobInput input) {
    outputs.addAll(state.step(now.toNanos(), paused, input));
    return this;
  }

  private <T extends JobOutput> List<T> take(Class<T> type) {
    List<T> found = outputs.stream().filter(type::isInstance).map(type::cast).toList();
    outputs.removeIf(type::isInstance);
    return found;
  }

  private void join(String group, Integer... globalRanks) {
    offer(new JobInput.Joined(group, List.of(globalRanks), true));
  }

  private void read(long number, FailureEvent event) {
    read(number, new LogEntry.Failed(event));
  }

  private void read(long number, LogEntry entry) {
    offer(new JobInput.Read(number, entry));
  }

  private void pass(Duration time) {
    now = now.plus(time);
    offer(new JobInput.Tick());
  }

  private static FailureEvent failure(String group, int rank, String message) {
    return FailureEvent.outside(group, Kind.FAILED, rank, rank, message);
  }

  private static FailureEvent event(Kind kind, int reporter, int failedRank) {
    return new FailureEvent(
        "0", kind, reporter, failedRank, OpType.ALL_REDUCE, 3, Duration.ZERO, "no data");
  }

  private static RankProgress at(long sequence) {
    return RankProgress.ofCalls(
        List.of(new Issued(OpType.ALL_REDUCE, sequence, "", "", -1, -1, "")), List.of());
  }

  private AgreedFailure verdict() {
    List<Settle> settled = take(Settle.class);
    assertThat(settled).hasSize(1);
    return settled.getFirst().verdict();
  }

  @Test
  void theFirstFailureOfAGroupCounts() {
    join("a", 0, 1);
    join("b", 1, 2);
    FailureEvent first = failure("a", 0, "first");
    FailureEvent other = failure("b", 1, "other");
    read(1, first);
    read(2, failure("a", 1, "second"));
    read(3, other);
    assertThat(take(Fail.class)).containsExactly(new Fail(first), new Fail(other));
    assertThat(take(Settle.class))
        .extracting(settle -> settle.verdict().event())
        .containsExactly(first, other);
  }

  @Test
  void aGroupLearnsOfAFailureThatCameBeforeItAndOfNoneAfterIt() {
    FailureEvent early = failure("a", 0, "early");
    read(1, early);
    assertThat(outputs).isEmpty();
    join("a", 0, 1);
    assertThat(take(Fail.class)).containsExactly(new Fail(early));
    assertThat(verdict().event()).isEqualTo(early);
    join("b", 0, 1);
    offer(new JobInput.Left("b"));
    read(2, failure("b", 0, "late"));
    assertThat(outputs).isEmpty();
  }

  @Test
  void theLossOfARankFailsItsGroupsAlsoThoseThatComeLater() {
    join("a", 1, 5);
    join("b", 1, 4);
    read(1, FailureEvent.lost(5));
    join("c", 0, 1, 5);
    join("d", 0, 1);
    assertThat(take(LookUp.class))
        .extracting(
            look -> look.known().event().group(),
            look -> look.known().event().kind(),
            look -> look.known().event().failedRank())
        .containsExactly(tuple("a", Kind.PEER_LOST, 1), tuple("c", Kind.PEER_LOST, 2));
  }

  @Test
  void whatComesFirstInTheLogCountsForARankThatJoinsLater() {
    join("b", 0, 1, 5);
    read(1, FailureEvent.lost(5));
    read(2, failure("a", 0, "late report"));
    join("a", 0, 1, 5);
    assertThat(take(Fail.class))
        .extracting(fail -> fail.event().group(), fail -> fail.event().kind())
        .containsExactly(tuple("b", Kind.PEER_LOST), tuple("a", Kind.PEER_LOST));
    read(3, failure("c", 0, "first"));
    read(4, FailureEvent.lost(4));
    join("c", 0, 1, 4);
    assertThat(take(Fail.class))
        .extracting(fail -> fail.event().message())
        .containsExactly("first");
  }

  @Test
  void nothingIsReportedOfAGroupThatWasLeft() {
    join("a", 0, 1);
    offer(new JobInput.Left("a"));
    offer(new JobInput.Failed(failure("a", 1, "after the close")));
    offer(new JobInput.PeerGone(failure("a", 1, "after the close")));
    offer(new JobInput.Reached("a"));
    assertThat(outputs).isEmpty();
    assertThat(state.nextLimit()).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void aRankThatRefusesAGroupWaitsForNothing() {
    FailureEvent refusal = FailureEvent.outside("a", Kind.FAILED, 0, -1, "different lists");
    offer(new JobInput.Refused(refusal));
    assertThat(take(Append.class)).containsExactly(new Append(1, new LogEntry.Failed(refusal)));
    assertThat(state.nextLimit()).isEqualTo(Long.MAX_VALUE);
    offer(new JobInput.Written(1));
    pass(TIMES.answer().multipliedBy(2));
    assertThat(outputs).isEmpty();
    assertThat(state.isUnheard()).isFalse();
  }

  private static FailureEvent gone(int peer) {
    return FailureEvent.outside("0", Kind.PEER_LOST, 1, peer, "reset");
  }

  private void losePeerInSetUp(int peer) {
    offer(new JobInput.Joined("0", List.of(0, 1, 2), false));
    offer(new JobInput.PeerGone(gone(peer)));
    assertThat(take(Probe.class)).containsExactly(new Probe("0"));
    assertThat(outputs).isEmpty();
    assertThat(state.nextLimit()).isEqualTo(TIMES.answer().toNanos());
  }

  @Test
  void theReasonWhyAPeerGaveUpCounts() {
    losePeerInSetUp(2);
    FailureEvent reason = failure("0", 2, "no such device");
    read(1, reason);
    assertThat(verdict().event()).isEqualTo(reason);
    assertThat(take(Append.class)).isEmpty();
  }

  @Test
  void theRanksAskWhyAPeerGaveUpThatGivesNoReason() {
    losePeerInSetUp(2);
    offer(new JobInput.Reached("0"));
    pass(TIMES.answer());
    FailureEvent report = gone(2).asTimeout();
    assertThat(take(Append.class)).containsExactly(new Append(1, new LogEntry.Failed(report)));
    offer(new JobInput.Written(1));
    Ask ask = take(Ask.class).getFirst();
    assertThat(ask.limit()).isEqualTo(TIMES.answer());
    RankProgress waits = RankProgress.ofSetUp("0");
    offer(
        new JobInput.Collected(
            "0", ask.known().and(Map.of(1, waits, 2, waits), Set.of(0), Set.of())));
    offer(new JobInput.Written(2));
    AgreedFailure known = verdict();
    assertThat(known.failedRank()).isZero();
    assertThat(known.text()).isEqualTo("reset; rank 0 does not answer");
  }

  @Test
  void aSilentStoreIsTheReasonWhyAPeerGaveUp() {
    losePeerInSetUp(2);
    pass(TIMES.answer());
    assertThat(take(Append.class)).isEmpty();
    AgreedFailure known = verdict();
    assertThat(known.failedRank()).isZero();
    assertThat(known.text()).isEqualTo("reset; rank 0, which serves the store, does not answer");
  }

  @Test
  void aSetUpThatEndsWellWaitsForNoReason() {
    losePeerInSetUp(2);
    join("0", 0, 1, 2);
    pass(TIMES.answer());
    assertThat(outputs).isEmpty();
  }

  @Test
  void aRankThatDecidesAloneSaysAtOnceWhereItStands() {
    AgreedFailure known = reportInSilence(0, Kind.PEER_LOST, 2);
    assertThat(known.failedRank()).isEqualTo(2);
    assertThat(take(Ask.class))
        .extracting(Ask::publishes, Ask::limit)
        .containsExactly(tuple(true, null));
  }

  @Test
  void whoLosesThePlaceInTheLogLearnsWhatIsThereAndTriesTheNext() {
    join("0", 0, 1, 2);
    FailureEvent own = event(Kind.ABORTED, 1, 1);
    offer(new JobInput.Failed(own));
    assertThat(take(Append.class)).containsExactly(new Append(1, new LogEntry.Failed(own)));
    offer(new JobInput.Taken(1, new LogEntry.Failed(failure("other", 0, "elsewhere"))));
    assertThat(take(Append.class)).containsExactly(new Append(2, new LogEntry.Failed(own)));
    FailureEvent first = failure("0", 2, "mine was first");
    offer(new JobInput.Taken(2, new LogEntry.Failed(first)));
    assertThat(take(Append.class)).isEmpty();
    assertThat(verdict().event()).isEqualTo(first);
  }

  @Test
  void theReporterCollectsAndItsFindingSettlesTheGroup() {
    join("0", 0, 1, 2);
    FailureEvent own = event(Kind.TIMEOUT, 1, -1);
    offer(new JobInput.Failed(own)).offer(new JobInput.Written(1));
    Ask ask = take(Ask.class).getFirst();
    assertThat(ask).isEqualTo(new Ask(ask.known(), true, TIMES.answer()));
    Evidence all = ask.known().and(Map.of(0, at(3), 1, at(3), 2, at(2)), Set.of(), Set.of());
    take(Append.class);
    offer(new JobInput.Collected("0", all));
    LogEntry entry = take(Append.class).getFirst().entry();
    assertThat(take(Settle.class)).isEmpty();
    offer(new JobInput.Written(2));
    AgreedFailure own1 = verdict();
    assertThat(own1.failedRank()).isEqualTo(2);

    state = new JobState(1, 0, TIMES, 0);
    join("0", 0, 1, 2);
    read(1, event(Kind.TIMEOUT, 0, -1));
    assertThat(take(Ask.class)).extracting(Ask::limit).containsOnlyNulls();
    offer(new JobInput.Read(2, entry));
    assertThat(verdict().failedRank()).isEqualTo(2);
  }

  @Test
  void theOthersCollectIfTheReporterIsSilentAndTheFirstFindingCounts() {
    join("0", 0, 1, 2);
    read(1, event(Kind.TIMEOUT, 0, -1));
    take(Ask.class);
    pass(TIMES.finding().minusNanos(1));
    assertThat(take(Ask.class)).isEmpty();
    pass(Duration.ofNanos(1));
    Ask late = take(Ask.class).getFirst();
    assertThat(late).isEqualTo(new Ask(late.known(), false, TIMES.lateAnswer()));
    offer(
        new JobInput.Collected(
            "0", late.known().and(Map.of(1, at(3), 2, at(3)), Set.of(0), Set.of())));
    LogEntry.Found first = new LogEntry.Found("0", 2, new Diagnosis(2, "said by rank 2"));
    offer(new JobInput.Taken(2, first));
    assertThat(take(Append.class)).hasSize(1);
    assertThat(verdict().text()).isEqualTo("no data; said by rank 2");
  }

  @Test
  void withoutAnyFindingARankDecidesAlone() {
    join("0", 0, 1, 2);
    read(1, event(Kind.TIMEOUT, 2, -1));
    pass(TIMES.answers().minusNanos(1));
    assertThat(take(Settle.class)).isEmpty();
    pass(Duration.ofNanos(1));
    assertThat(verdict().text())
        .isEqualTo("no data; rank 0, which serves the store, does not answer");
  }

  /** Reports a failure that the store does not take, and returns the verdict. */
  private AgreedFailure reportInSilence(int server, Kind kind, int failedRank) {
    now = Duration.ZERO;
    state = new JobState(1, server, TIMES, 0);
    join("0", 0, 1, 2);
    offer(new JobInput.Failed(event(kind, 1, failedRank)));
    pass(TIMES.answer().minusNanos(1));
    assertThat(state.isUnheard()).isFalse();
    assertThat(take(Settle.class)).isEmpty();
    pass(Duration.ofNanos(1));
    assertThat(state.isUnheard()).isTrue();
    return verdict();
  }

  @Test
  void aSilentStoreIsLaidAtTheRankThatServesIt() {
    AgreedFailure known = reportInSilence(0, Kind.TIMEOUT, -1);
    assertThat(known.failedRank()).isZero();
    assertThat(known.text()).isEqualTo("no data; rank 0, which serves the store, does not answer");
    assertThat(reportInSilence(0, Kind.TIMEOUT, 2).failedRank()).isZero();
  }

  @Test
  void aSilentStoreOfNoRankIsLaidAtNobody() {
    AgreedFailure known = reportInSilence(-1, Kind.TIMEOUT, -1);
    assertThat(known.failedRank()).isEqualTo(-1);
    assertThat(known.text())
        .isEqualTo("no data; the store does not answer, so no rank can be asked");
  }

  @Test
  void aLostPeerIsNamedThoughTheStoreIsSilent() {
    assertThat(reportInSilence(0, Kind.PEER_LOST, 2).failedRank()).isEqualTo(2);
  }

  @Test
  void aReportThatTheStoreTakesLateIsNotLost() {
    AgreedFailure _ = reportInSilence(0, Kind.ABORTED, 1);
    assertThat(state.isAppending()).isTrue();
    offer(new JobInput.Written(1));
    assertThat(state.isAppending()).isFalse();
    assertThat(state.isUnheard()).isFalse();
    assertThat(take(Settle.class)).isEmpty();
  }

  @Test
  void aStoreThatWasSilentJustNowIsNotAsked() {
    join("0", 0, 1, 2);
    offer(new JobInput.Silence()).offer(new JobInput.Failed(event(Kind.TIMEOUT, 1, -1)));
    assertThat(take(Append.class)).isEmpty();
    assertThat(verdict().failedRank()).isZero();
  }

  @Test
  void aRankThatStoodStillReportsThatInsteadOfWhatFollowsFromIt() {
    join("0", 0, 1, 2);
    paused = true;
    offer(new JobInput.Failed(event(Kind.PEER_LOST, 1, 2))).offer(new JobInput.Written(1));
    assertThat(take(Ask.class)).isEmpty();
    AgreedFailure known = verdict();
    assertThat(known.failedRank()).isEqualTo(1);
    assertThat(known.text()).isEqualTo("no data; rank 1 was paused until now");
  }

  @Test
  void aRankThatStoodStillNamesItselfUnlessAnotherRankFoundSomething() {
    for (boolean isFirst : List.of(true, false)) {
      outputs.clear();
      state = new JobState(1, 0, TIMES, 0);
      join("0", 0, 1, 2);
      paused = true;
      read(1, event(Kind.TIMEOUT, 0, -1));
      LogEntry.Found own = (LogEntry.Found) take(Append.class).getLast().entry();
      assertThat(own.finding().failedRank()).isEqualTo(1);
      LogEntry.Found other = new LogEntry.Found("0", 0, new Diagnosis(1, "rank 1 is silent"));
      offer(isFirst ? new JobInput.Written(2) : new JobInput.Taken(2, other));
      AgreedFailure known = verdict();
      assertThat(known.failedRank()).isEqualTo(1);
      assertThat(known.text().endsWith("rank 1 is silent")).isEqualTo(!isFirst);
    }
  }

  @Test
  void aServerThatStoodStillSaysSoBesideTheEndsThatItsStoreFinds() {
    for (int server : List.of(0, 1)) {
      outputs.clear();
      state = new JobState(1, server, TIMES, 0);
      join("0", 0, 1, 2);
      paused = true;
      read(1, FailureEvent.lost(2));
      if (server == 1) {
        LogEntry.Found own = (LogEntry.Found) take(Append.class).getLast().entry();
        assertThat(own.finding().failedRank()).isEqualTo(1);
        offer(new JobInput.Written(2));
        AgreedFailure known = verdict();
        assertThat(known.failedRank()).isEqualTo(2);
        assertThat(known.text()).endsWith("; rank 1 was paused until now");
      } else {
        assertThat(take(LookUp.class)).hasSize(1);
      }
    }
  }

  @Test
  void aRankThatHasNotComeLearnsWhomTheOthersFind() {
    offer(new JobInput.Joined("0", List.of(0, 1, 2), false));
    read(1, event(Kind.TIMEOUT, 2, -1));
    assertThat(take(Ask.class)).hasSize(1);
    read(2, new LogEntry.Found("0", 2, new Diagnosis(1, "rank 1 is silent")));
    assertThat(verdict().failedRank()).isEqualTo(1);
  }

  @Test
  void theEndOfTheServerFailsItsGroups() {
    join("0", 0, 1, 2);
    join("a", 1, 2);
    offer(new JobInput.ServerLost("it served the store"));
    Settle settled = take(Settle.class).getFirst();
    assertThat(settled.evidence().alone()).isTrue();
    assertThat(settled.verdict().failedRank()).isZero();
  }

  private static Question question(int reporter, long sequence) {
    return new Question("0", reporter, OpType.ALL_REDUCE, sequence, -1, 0, Duration.ofSeconds(10));
  }

  @Test
  void ranksThatWaitInOneCollectiveAskOnce() {
    join("0", 0, 1, 2);
    Question own = question(1, 3);
    Question theirs = question(2, 3);
    offer(new JobInput.Waits(own)).offer(new JobInput.Taken(1, new LogEntry.Asked(theirs)));
    assertThat(take(Append.class)).containsExactly(new Append(1, new LogEntry.Asked(own)));
    assertThat(take(Adopt.class)).containsExactly(new Adopt(own, 1));
    offer(new JobInput.Adopted(own, "rank 0 is late"));
    assertThat(take(Explain.class)).containsExactly(new Explain(own, "rank 0 is late"));
    assertThat(state.nextLimit()).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void whoAsksCollectsTheAnswersAndTellsTheOthers() {
    join("0", 0, 1, 2);
    Question own = question(1, 3);
    offer(new JobInput.Waits(own)).offer(new JobInput.Written(1));
    Find find = take(Find.class).getFirst();
    assertThat(find.number()).isEqualTo(1);
    Evidence all = find.known().and(Map.of(1, at(3), 2, at(2)), Set.of(0), Set.of());
    take(Append.class);
    take(JobOutput.Answer.class);
    offer(new JobInput.Answered(own, 1, all));
    String found =
        "rank 0 is hung: rank 1 has waited for 10 s in allReduce #3; rank 0 does not answer, rank 2"
            + " has not called it (its last collective was #2)";
    assertThat(outputs).containsExactly(new Tell(1, found), new Explain(own, found));
  }

  @Test
  void aStoreThatTakesNoQuestionOrBringsNoAnswerIsSilent() {
    String silence =
        "hung: rank 1 has waited for 10 s in allReduce #%d; the store does not answer, so no rank"
            + " can be asked";
    join("0", 0, 1, 2);
    Question own = question(1, 3);
    offer(new JobInput.Waits(own)).offer(new JobInput.Unwritten());
    assertThat(take(Explain.class)).containsExactly(new Explain(own, silence.formatted(3)));
    offer(new JobInput.Waits(own)).offer(new JobInput.Written(1));
    offer(new JobInput.Answered(own, 1, null));
    assertThat(take(Explain.class)).containsExactly(new Explain(own, silence.formatted(3)));
    offer(new JobInput.Waits(question(1, 4)));
    assertThat(state.nextLimit()).isEqualTo(TIMES.question().toNanos());
    pass(TIMES.question());
    assertThat(take(Explain.class))
        .containsExactly(new Explain(question(1, 4), silence.formatted(4)));
    offer(new JobInput.Adopted(question(1, 4), "too late"));
    assertThat(take(Explain.class)).isEmpty();
  }

  @Test
  void nobodyIsAskedAboutAGroupThatWasLeft() {
    join("0", 0, 1, 2);
    offer(new JobInput.Waits(question(1, 3)));
    offer(new JobInput.Waits(question(1, 4)));
    offer(new JobInput.Left("0"));
    take(Append.class);
    offer(new JobInput.Written(1));
    assertThat(outputs).isEmpty();
    assertThat(state.isAppending()).isFalse();
    assertThat(state.nextLimit()).isEqualTo(Long.MAX_VALUE);
  }

  @Test
  void anAppendThatThisRankSleptThroughIsTriedAgain() {
    join("0", 0, 1, 2);
    FailureEvent own = failure("0", 1, "own");
    offer(new JobInput.Failed(own)).offer(new JobInput.Missed());
    Append append = new Append(1, new LogEntry.Failed(own));
    assertThat(take(Append.class)).containsExactly(append, append);
    offer(new JobInput.Taken(1, new LogEntry.Failed(own)));
    assertThat(verdict().failedRank()).isEqualTo(1);
    assertThat(take(Append.class)).isEmpty();
    assertThat(state.isAppending()).isFalse();
  }

  @Test
  void aMissedAppendIsNotTriedAgainIfTheLogShowsIt() {
    join("0", 0, 1, 2);
    Question own = question(1, 3);
    offer(new JobInput.Waits(own));
    offer(new JobInput.Read(1, new LogEntry.Asked(own))).offer(new JobInput.Missed());
    assertThat(take(Append.class)).containsExactly(new Append(1, new LogEntry.Asked(own)));
    assertThat(take(Find.class)).hasSize(1);
    assertThat(take(Adopt.class)).isEmpty();
    assertThat(state.isAppending()).isFalse();
  }

  @Test
  void entriesOfALaterVersionAreSkipped() {
    join("0", 0, 1, 2);
    offer(new JobInput.Read(1, LogEntry.decode(new byte[] {7, 'x'})));
    assertThat(outputs).isEmpty();
    read(2, failure("0", 2, "known"));
    assertThat(verdict().failedRank()).isEqualTo(2);
    LogEntry.Found found = new LogEntry.Found("0", 2, new Diagnosis(1, "why"));
    assertThat(LogEntry.decode(found.encode())).isEqualTo(found);
    assertThat(LogEntry.isFailure(FailureEvent.lost(3).encode())).isTrue();
    assertThat(LogEntry.isFailure(failure("\u00e9", 0, "").encode())).isTrue();
    assertThat(LogEntry.isFailure(found.encode())).isFalse();
  }
}
