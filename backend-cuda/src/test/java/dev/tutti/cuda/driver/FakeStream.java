package dev.tutti.cuda.driver;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
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
  private record Mark(CountDownLatch reached) implements Task {
    @Override
    public void run() {
      reached.countDown();
    }
  }

  /** Separates the threads from those of the tests that create streams. */
  private static final ThreadGroup GROUP = new ThreadGroup(topGroup(), "fake streams");

  /** Groups create many streams, most of which do little, so their threads are shared. */
  private static final ExecutorService THREADS =
      Executors.newCachedThreadPool(
          run -> Thread.ofPlatform().group(GROUP).daemon().name("fake-stream").unstarted(run));

  final int device;
  private final ArrayDeque<Task> tasks = new ArrayDeque<>();
  private final AtomicInteger pending = new AtomicInteger();
  private boolean running;
  private @Nullable Thread runner;
  private boolean closed;
  private volatile @Nullable Capture capture;

  /** A capture of a stream. */
  static final class Capture {
    final Thread recorder = Thread.currentThread();
    final int mode;
    private final List<Task> tasks = new ArrayList<>();
    private volatile boolean spoilt;
    private volatile boolean ended;

    Capture(int mode) {
      this.mode = mode;
    }

    /** Invalidates the capture, so that it yields no graph. */
    void spoil() {
      spoilt = true;
    }

    boolean isSpoilt() {
      return spoilt;
    }

    boolean isEnded() {
      return ended;
    }
  }

  FakeStream(int device) {
    this.device = device;
  }

  private void run() {
    try {
      for (Task task = next(); task != null; task = next()) {
        if (task instanceof Mark mark) {
          reach(mark);
        } else {
          task.run();
          pending.decrementAndGet();
        }
      }
    } catch (InterruptedException e) {
      // The end of the stream.
    }
  }

  /** Ends the step with its mark: whoever sees the last point reached finds the stream idle. */
  private synchronized void reach(Mark mark) {
    mark.run();
    pending.decrementAndGet();
  }

  private synchronized @Nullable Task next() {
    Task task = closed ? null : tasks.poll();
    running = task != null;
    runner = running ? Thread.currentThread() : null;
    return task;
  }

  synchronized void enqueue(Task task) {
    Capture current = capture;
    if (current != null) {
      current.tasks.add(task);
      return;
    }
    pending.incrementAndGet();
    tasks.add(task);
    if (!running) {
      running = true;
      THREADS.execute(this::run);
    }
  }

  /** Counts a latch down when the steps so far are done. */
  void mark(CountDownLatch reached) {
    enqueue(new Mark(reached));
  }

  synchronized boolean isIdle() {
    return pending.get() == 0;
  }

  boolean isCapturing() {
    return capture != null;
  }

  /** Returns the capture, or null. */
  @Nullable Capture capture() {
    return capture;
  }

  synchronized void beginCapture(int mode) {
    capture = new Capture(mode);
  }

  /** Ends the capture; returns null if it was invalidated. */
  synchronized @Nullable List<Task> endCapture() {
    Capture ending = capture;
    capture = null;
    if (ending == null) {
      return List.of();
    }
    ending.ended = true;
    return ending.isSpoilt() ? null : List.copyOf(ending.tasks);
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
