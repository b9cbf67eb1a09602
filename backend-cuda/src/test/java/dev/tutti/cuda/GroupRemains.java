package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * Counts of the resources that groups can leave behind.
 *
 * @param fds open file descriptors of this process
 * @param sockets files in the socket directory
 * @param threads threads that groups have started
 * @param events events on all devices that have not been returned
 * @param pinned blocks of page-locked memory in use
 * @param usedBytes bytes on all devices that their drivers do not report as free
 */
record GroupRemains(int fds, int sockets, int threads, int events, int pinned, long usedBytes) {
  private static final long LEAST_BYTES = 4 << 20;

  static GroupRemains of(Cuda cuda, Path sockets) throws IOException {
    Until.holds("the end of the threads of groups", () -> groupThreads() == 0);
    int events = 0;
    int pinned = 0;
    long used = 0;
    for (int d = 0; d < cuda.deviceCount(); d++) {
      CudaDevice device = cuda.device(d);
      device.context().enter();
      cuda.driver().contexts().synchronize();
      device.tensors().releaseCached();
      events += device.events().inUse();
      pinned += device.pinned().blocksInUse();
      var room = cuda.driver().memory().room();
      used += room.total() - room.free();
    }
    try (Stream<Path> files = Files.list(sockets)) {
      return new GroupRemains(
          Fds.open().size(), (int) files.count(), groupThreads(), events, pinned, used);
    }
  }

  private static int groupThreads() {
    return (int)
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("tutti-cuda"))
            .count();
  }

  void assertNoMoreThan(GroupRemains before) {
    assertThat(fds).as("file descriptors").isLessThanOrEqualTo(before.fds);
    assertThat(sockets).as("socket files").isZero();
    assertThat(threads).as("threads").isZero();
    assertThat(events).as("events").isLessThanOrEqualTo(before.events + 4);
    assertThat(pinned).as("page-locked blocks").isLessThanOrEqualTo(before.pinned);
    assertThat(usedBytes).as("device memory").isLessThan(before.usedBytes + LEAST_BYTES);
  }
}
