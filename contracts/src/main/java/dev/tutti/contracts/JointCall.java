package dev.tutti.contracts;

import dev.tutti.ProcessGroup;
import dev.tutti.testing.HeldTime;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/**
 * A collective call that some ranks of a world make together while the others stay away. If several
 * call, the clock stands still until all of them have called, since one that calls after the
 * deadline of another would be as absent as those that stay away.
 */
final class JointCall {
  private final HeldTime time = new HeldTime();
  private final Queue<Caller> callers = new ConcurrentLinkedQueue<>();
  private final IntPredicate calls;
  private final int count;

  /**
   * A rank that is about to make its call.
   *
   * @param group the group of the rank
   * @param number the number of its last collective
   * @param hasEnded whether the call has ended; one that was refused has no number
   */
  private record Caller(ProcessGroup group, long number, AtomicBoolean hasEnded) {
    boolean hasCalled() {
      return hasEnded.get() || group.sequenceNumber() > number;
    }
  }

  private JointCall(IntPredicate calls, int count) {
    this.calls = calls;
    this.count = count;
  }

  /**
   * Lets ranks of a world make a call, and waits until it has ended on all of them.
   *
   * @param calls returns which ranks call
   * @param call makes and checks the call
   * @param after runs on all ranks afterwards
   */
  static void run(
      ContractWorld world,
      IntPredicate calls,
      ContractWorld.MemberBody call,
      ContractWorld.MemberBody after)
      throws Exception {
    int count = (int) IntStream.range(0, world.size()).filter(calls).count();
    new JointCall(calls, count).run(world, call, after);
  }

  private void run(
      ContractWorld world, ContractWorld.MemberBody call, ContractWorld.MemberBody after)
      throws Exception {
    CountDownLatch ended = new CountDownLatch(count);
    Thread watch = Thread.startVirtualThread(this::releaseOnceCalled);
    try {
      world.run(
          time,
          member -> {
            member.meet();
            if (calls.test(member.rank())) {
              call(member, call, ended);
            }
            Waiting.open(ended);
            after.run(member);
          });
    } finally {
      watch.interrupt();
    }
  }

  private void call(Member member, ContractWorld.MemberBody call, CountDownLatch ended)
      throws Exception {
    if (count > 1) {
      time.hold();
    }
    AtomicBoolean hasEnded = new AtomicBoolean();
    callers.add(new Caller(member.group(), member.group().sequenceNumber(), hasEnded));
    try {
      call.run(member);
    } finally {
      hasEnded.set(true);
      ended.countDown();
    }
  }

  private void releaseOnceCalled() {
    while (!Thread.interrupted()) {
      if (callers.size() == count && callers.stream().allMatch(Caller::hasCalled)) {
        time.release();
        return;
      }
      LockSupport.parkNanos(1_000_000);
    }
  }
}
