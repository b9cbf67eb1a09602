package dev.tutti.cuda.driver;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** Is a stream: tasks run one after the other on a thread of their own. */
final class FakeStream implements AutoCloseable {
  /** Is a step of a stream; ends early when interrupted. */
  interface Task {
    void run() throws InterruptedException;
  }

  final int device;
  private final LinkedBlockingQueue<Task> tasks = new LinkedBlockingQueue<>();
  private final AtomicInteger pending = new AtomicInteger();

  /** Keeps the threads apart from those of the tests that make streams. */
  private static final ThreadGroup GROUP = new ThreadGroup(topGroup(), "fake streams");

  private final Thread thread;
  private @Nullable List<Task> recorded;

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
    if (recorded != null) {
      recorded.add(task);
      return;
    }
    pending.incrementAndGet();
    tasks.add(task);
  }

  boolean isIdle() {
    return pending.get() == 0;
  }

  synchronized boolean isCapturing() {
    return recorded != null;
  }

  synchronized void beginCapture() {
    recorded = new ArrayList<>();
  }

  synchronized List<Task> endCapture() {
    List<Task> all = recorded == null ? List.of() : List.copyOf(recorded);
    recorded = null;
    return all;
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
