package dev.tutti.cli.run;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import java.util.concurrent.CompletableFuture;

/** What the thread of a launcher handles. */
sealed interface LaunchEvent {
  record Ended(int attempt, RankExit exit) implements LaunchEvent {}

  record Decided(int attempt, Verdict verdict) implements LaunchEvent {}

  record Signalled(int signal) implements LaunchEvent {}

  record Unread() implements LaunchEvent {}

  record Scale(int ranks, CompletableFuture<String> answer) implements LaunchEvent {}
}
