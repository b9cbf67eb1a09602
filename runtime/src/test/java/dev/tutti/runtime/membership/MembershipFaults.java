package dev.tutti.runtime.membership;

import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** Faults to plant in what decides who is a member. */
public final class MembershipFaults {
  private MembershipFaults() {}

  /** Returns the class, a text in it, and what replaces it. */
  public static Stream<Arguments> all() {
    return Stream.of(
        arguments(
            "Membership",
            "next.change() == open && next.base() == generation",
            "next.base() == generation"),
        arguments("Membership", "next.change() == open && next.base() == generation", "open >= 0"),
        arguments("Membership", "if (what == open) {", "if (what >= 0) {"),
        arguments("Membership", "open == 0 && wanted.base() == generation", "open == 0"),
        arguments("Membership", "open == 0 && wanted.base() == generation", "wanted.base() >= 0"),
        arguments("Membership", "place != read + 1", "place < 0"),
        arguments("Membership", "&& waiting.keySet().containsAll(next.plan().joined())", ""),
        arguments("MemberNumbers", "return next++;", "return next;"),
        arguments("Membership", "last = open; open = 0;", "last = open;"),
        arguments("Membership", "members.remove(number); leftOut", "leftOut"),
        arguments("ChangePlan", "if (ready.containsKey(member)) {", "if (member >= 0) {"),
        arguments("ChangePlan", "Math.min(kept.size(), rules.most())", "kept.size()"),
        arguments("ChangePlan", "Math.min(room, waiting.size())", "waiting.size()"),
        arguments("ChangeState", "waiting.retainAll(all.names());", ""),
        arguments("ChangeState", "here.put(number, ready);", "here.put(0, ready);"),
        arguments(
            "ChangeState",
            "membership.generation() != base",
            "membership.generation() != base && membership.isMember(number)"),
        arguments("ChangeState", "if (said != 0) {", "if (said < 0) {"),
        arguments(
            "ChangeState",
            "Append(membership.read() + 1, entry)",
            "Append(membership.read() + 2, entry)"),
        arguments("ChangeState", "proposal = null; isCollecting", "isCollecting"),
        arguments("ChangeState", "isEnough && (now >= until", "(now >= until"),
        arguments("ChangeState", "} else if (now >= until) {", "} else if (now < 0) {"),
        arguments(
            "ChangeState",
            "case ChangeInput.Unanswered() -> isAppending = false;",
            "case ChangeInput.Unanswered() -> {}"));
  }
}
