package dev.tutti.contracts;

import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import java.util.ArrayList;
import java.util.List;

/**
 * A call of an operation that only rank 0 makes, so that it waits for the others, in a group of its
 * own.
 */
record LoneCall(OpType op, Member member, Refusals.Call call) {
  /** Creates one call of each operation that the backend declares; all ranks must do so. */
  static List<LoneCall> ofEach(Member member) throws Exception {
    List<LoneCall> calls = new ArrayList<>();
    for (OpType op : GoodCalls.declared(member.capabilities())) {
      Member own = member.in(member.twin());
      calls.add(new LoneCall(op, own, new GoodCalls(own, member.size() - 1, 0).of(op)));
    }
    // What rank 0 calls shall not meet another that still sets up a group.
    member.meet();
    return calls;
  }

  ProcessGroup group() {
    return member.group();
  }

  /** Returns whether rank 0 made the call. */
  boolean isMade() {
    return group().sequenceNumber() > 0
        || group().diagnostics().flightRecord().contains(op.label());
  }
}
