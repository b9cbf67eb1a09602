package dev.tutti.contracts;

import java.time.Duration;

/** A call whose timeout a test chooses. */
@FunctionalInterface
interface BriefCall {
  void run(Member member, Duration timeout) throws Exception;
}
