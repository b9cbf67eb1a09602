package dev.tutti.cuda.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A stream: tasks run one after the other on its own thread. */
final class FakeStream implements AutoCloseable {
  /** A step of a stream; ends early if interrupted. */
  interface Task {
    void run() throws InterruptedException;
  }

  final int device;
  private final LinkedBlockingQueue<Task> tasks = new LinkedBlockingQueue<>();
  private final AtomicInteger pending = new AtomicInteger();

  /** Separates these threads from those of the tests that create streams. */
  private static final ThreadGroup GROUP = new ThreadGroup(topGroup(), "fake streams");

  private final Thread thread;
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
    this.thread = Thread.ofPlatform().group(GROUP).daemon().name("fake-stream").start(this::run);
  }

  private void run() {
    try {
      while (true) {
        Task task = tasks.take();
        task.run();
        pending.decrementAndGet();
      }
    } catch (InterruptedException e) {
      // The end of the stream.
      Thread.currentThread().interrupt();
    }
  }

  synchronized void enqueue(Task task) {
    Capture current = capture;
    if (current != null) {
      current.tasks.add(task);
      return;
    }
    pending.incrementAndGet();
    tasks.add(task);
  }

  boolean isIdle() {
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

  @Override
  public void close() {
    thread.interrupt();
  }

  private static ThreadGroup topGroup() {
    ThreadGroup group = Thread.currentThread().getThreadGroup();
    while (group.getParent() != null) {
      group = group.getParent();
    }
    return group;
  }
}
