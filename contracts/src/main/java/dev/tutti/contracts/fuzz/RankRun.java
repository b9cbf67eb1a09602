package dev.tutti.contracts.fuzz;

import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Registration;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.contracts.ContractSubject;
import dev.tutti.spi.Time;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/** A runner of the steps of one rank, on as many threads as the program has. */
final class RankRun {
  private final ContractSubject subject;
  private final ProgramReference reference;
  private final Program program;
  private final Groups members;
  private final int rank;
  private final ProgramRunner runner;
  private final Time time;
  private final Map<Integer, GroupUse> uses = new HashMap<>();
  private final List<Thread> threads = new ArrayList<>();
  private final Set<Integer> spread;
  private final String[] positions;

  /**
   * Prepares to run the steps of a rank.
   *
   * @param time what creates its threads
   */
  RankRun(ContractSubject subject, Program program, int rank, ProgramRunner runner, Time time) {
    this.subject = subject;
    this.reference =
        new ProgramReference(program.seed(), subject.dividesTheSum(), subject.nanWins());
    this.program = program;
    this.members = program.groups();
    this.rank = rank;
    this.runner = runner;
    this.time = time;
    this.spread =
        members.ids().stream()
            .filter(id -> !subject.isOnHost() && program.spreadsMessages(id))
            .collect(Collectors.toSet());
    this.positions = new String[program.threads()];
    members.ids().forEach(id -> uses.put(id, new GroupUse()));
  }

  /** Runs all steps of the rank; the calling thread waits for the threads that it starts. */
  void run(ProcessGroup world) throws InterruptedException {
    use(0).made(world);
    for (int number = 0; number < positions.length; number++) {
      int self = number;
      positions[number] = "not started";
      threads.add(time.unstarted("rank-" + rank + "-thread-" + number, () -> enter(self)));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) {
      thread.join();
    }
  }

  /** Interrupts the threads that are still running. */
  void interrupt() {
    threads.forEach(Thread::interrupt);
  }

  /** Describes where each thread is. */
  String describe() {
    StringBuilder text = new StringBuilder();
    for (int number = 0; number < threads.size(); number++) {
      Thread thread = threads.get(number);
      text.append("rank %d, thread %d: %s".formatted(rank, number, positions[number]));
      for (StackTraceElement frame : thread.getStackTrace()) {
        text.append("\n    at ").append(frame);
      }
      text.append('\n');
    }
    return text.toString();
  }

  private GroupUse use(int group) {
    return Objects.requireNonNull(uses.get(group));
  }

  private void enter(int number) {
    try {
      Registration leave = subject.enter(rank);
      try {
        runThread(number);
        positions[number] = "ended";
      } finally {
        leave.close();
      }
    } catch (Throwable e) {
      String where = "rank " + rank + ", thread " + number + ", " + positions[number];
      positions[number] = "failed in " + positions[number] + ": " + e;
      runner.fail(where, e);
    }
  }

  /** A call that its thread has not awaited yet. */
  private static final class Pending {
    private final StepCall call;
    private int delay;

    Pending(StepCall call, int delay) {
      this.call = call;
      this.delay = delay;
    }
  }

  private void runThread(int number) throws Exception {
    List<Pending> pending = new ArrayList<>();
    for (Step step : program.steps()) {
      if (step.threads().get(rank) == number && members.takesPart(rank, step)) {
        positions[number] = "step " + step;
        run(step, pending);
        for (Iterator<Pending> each = pending.iterator(); each.hasNext(); ) {
          Pending one = each.next();
          if (one.delay-- == 0) {
            finish(one.call, number);
            each.remove();
          }
        }
      }
    }
    for (Pending one : pending) {
      finish(one.call, number);
    }
  }

  private void finish(StepCall call, int number) throws Exception {
    positions[number] = "await of step " + call.step();
    call.await();
    call.check();
    runner.stepped(call.elements());
  }

  private void run(Step step, List<Pending> pending) throws Exception {
    GroupUse use = use(step.group());
    ProcessGroup group = use.await();
    switch (step.kind()) {
      case SPLIT -> split(step, group);
      case SUBGROUP -> subgroup(step, group);
      case CLOSE -> {
        use.awaitEnd(issuedBefore(step));
        group.close();
      }
      default -> {
        if (step.kind().isMessage() && spread.contains(step.group())) {
          emptyStream();
        }
        boolean async = step.isAsync(rank);
        StepCall call = new StepCall(subject, reference, step, group, async);
        call.start();
        use.issued(call.works());
        if (async) {
          pending.add(new Pending(call, step.delays().get(rank)));
        } else {
          call.check();
          runner.stepped(call.elements());
        }
        return;
      }
    }
    use.issued(List.of());
    runner.stepped(0);
  }

  /**
   * Waits for the work in the thread's current stream, by means of a copy to the host that comes
   * after it.
   */
  private void emptyStream() {
    Tensor _ = subject.copyOut(subject.allocate(DType.INT8, 1));
  }

  private int issuedBefore(Step last) {
    int issued = 0;
    for (Step step : program.steps()) {
      if (step.id() == last.id()) {
        break;
      }
      if (step.group() == last.group() && members.takesPart(rank, step)) {
        issued++;
      }
    }
    return issued;
  }

  private void split(Step step, ProcessGroup group) {
    int color = step.members().get(group.rank());
    Optional<ProcessGroup> made =
        group.split(color, step.root() == 1 ? -group.rank() : group.rank());
    check(made, color < 0 ? -1 : step.child() + color);
  }

  private void subgroup(Step step, ProcessGroup group) {
    Optional<ProcessGroup> made = group.subgroup(step.members());
    check(made, step.members().contains(group.rank()) ? step.child() : -1);
  }

  private void check(Optional<ProcessGroup> made, int id) {
    if (made.isPresent() != id >= 0) {
      throw new AssertionError("group " + made + " for group " + id + " on rank " + rank);
    }
    if (made.isPresent()) {
      ProcessGroup group = made.get();
      if (!group.globalRanks().equals(members.ranks(id))
          || group.rank() != members.ranks(id).indexOf(rank)) {
        throw new AssertionError(
            "rank %d is %d of %s, expected to be in %s"
                .formatted(rank, group.rank(), group.globalRanks(), members.ranks(id)));
      }
      use(id).made(group);
    }
  }

  /** The use of a group by the threads of the rank. */
  private static final class GroupUse {
    private final CompletableFuture<ProcessGroup> made = new CompletableFuture<>();
    private final List<Work> works = new ArrayList<>();
    private int issued;

    void made(ProcessGroup group) {
      made.complete(group);
    }

    /** Waits until a thread of this rank has created the group. */
    ProcessGroup await() throws InterruptedException, ExecutionException {
      return made.get();
    }

    synchronized void issued(List<Work> ofStep) {
      works.addAll(ofStep);
      issued++;
      notifyAll();
    }

    /** Waits until the threads have issued the given number of steps, and these have ended. */
    void awaitEnd(int steps) throws InterruptedException {
      List<Work> all;
      synchronized (this) {
        while (issued < steps) {
          wait();
        }
        all = List.copyOf(works);
      }
      all.forEach(Work::await);
    }
  }
}
