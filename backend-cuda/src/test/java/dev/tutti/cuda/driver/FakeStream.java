package dev.tutti.cuda.driver;

import java.util.ArrayDeque;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A stream: tasks run one after the other, on a thread that the stream holds while it has any. */
final class FakeStream implements AutoCloseable {
  /** A step of a stream; ends early if interrupted. */
  interface Task {
    void run() throws InterruptedException;
  }

  /** A step that marks a point. */
  record Mark(FakePoint point) implements Task {
    @Override
    public void run() {
      point.reached.countDown();
    }
  }

  /**
   * A step that waits for a point.
   *
   * @param isKnown whether it counts for the finder of races
   */
  record Wait(FakePoint point, boolean isKnown) implements Task {
    @Override
    public void run() throws InterruptedException {
      point.reached.await();
    }
  }

  /** Separates the threads from those of the tests that create streams. */
  private static final ThreadGroup GROUP = new ThreadGroup(topGroup(), "fake streams");

  /** Groups create many streams, most of which do little, so their threads are shared. */
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(
          run -> Thread.ofPlatform().group(GROUP).daemon().name("fake-stream").unstarted(run));

  final int device;
  final int number;
  private final Races races;
  private final ArrayDeque<Task> tasks = new ArrayDeque<>();
  private final AtomicInteger pending = new AtomicInteger();
  private boolean running;
  private @Nullable Thread runner;
  private boolean closed;
  private volatile @Nullable FakeCapture capture;
  private Clock clock = Clock.START;

  FakeStream(int device, int number, Races races) {
    this.device = device;
    this.number = number;
    this.races = races;
  }

  private void run() {
    try {
      for (Task task = next(); task != null; task = next()) {
        if (task instanceof Mark mark) {
          reach(mark);
        } else {
          task.run();
          if (task instanceof Wait wait && wait.isKnown) {
            learn(wait.point.clock);
          }
          pending.decrementAndGet();
        }
      }
    } catch (InterruptedException e) {
      // The end of the stream.
    }
  }

  /** Ends the step with its mark: whoever sees the last point reached finds the stream idle. */
  private synchronized void reach(Mark mark) {
    mark.point.clock = clock;
    mark.run();
    pending.decrementAndGet();
  }

  private synchronized @Nullable Task next() {
    Task task = closed ? null : tasks.poll();
    running = task != null;
    runner = running ? Thread.currentThread() : null;
    return task;
  }

  /** Adds a step, or records it. */
  synchronized void enqueue(Task task) {
    FakeCapture current = capture;
    if (current != null) {
      current.add(this, task);
    } else if (races.isEnabled()) {
      Clock issued = races.host();
      add(() -> races.run(begin(issued), task));
    } else {
      add(task);
    }
  }

  private synchronized Races.Stamp begin(Clock issued) {
    clock = clock.join(issued).tick(number);
    return new Races.Stamp(this, clock);
  }

  /** Orders later steps after what a clock says. */
  synchronized void learn(Clock earlier) {
    clock = clock.join(earlier);
  }

  private void add(Task task) {
    pending.incrementAndGet();
    tasks.add(task);
    if (!running) {
      running = true;
      THREADS.execute(this::run);
    }
  }

  /** Marks the end of the steps so far. */
  synchronized void mark(FakePoint point) {
    Mark mark = new Mark(point);
    FakeCapture current = capture;
    if (current != null) {
      current.add(this, mark);
    } else {
      add(mark);
    }
  }

  /** Orders later steps after a point. */
  synchronized void await(FakePoint point, boolean isKnown) {
    Wait wait = new Wait(point, isKnown);
    FakeCapture current = capture;
    if (current != null) {
      current.add(this, wait);
    } else {
      add(wait);
    }
  }

  /** Returns what the steps so far did, or null if they are not all done. */
  synchronized @Nullable Clock idleClock() {
    return isIdle() ? clock : null;
  }

  synchronized boolean isIdle() {
    return pending.get() == 0;
  }

  boolean isCapturing() {
    return capture != null;
  }

  /** Returns the capture, or null. */
  @Nullable FakeCapture capture() {
    return capture;
  }

  synchronized void beginCapture(int mode) {
    capture = new FakeCapture(this, mode);
  }

  /** Takes part in a capture that began in another stream. */
  synchronized void joinCapture(FakeCapture other) {
    other.join(this);
    capture = other;
  }

  synchronized void leaveCapture() {
    capture = null;
  }

  /** Runs no further steps. A thread that still waits for the stream finds it idle. */
  synchronized void end() {
    closed = true;
  }

  @Override
  public synchronized void close() {
    closed = true;
    Thread busy = runner;
    runner = null;
    if (busy != null) {
      busy.interrupt();
    }
  }

  private static ThreadGroup topGroup() {
    ThreadGroup group = Thread.currentThread().getThreadGroup();
    while (group.getParent() != null) {
      group = group.getParent();
    }
    return group;
  }
}
