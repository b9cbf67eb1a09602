package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.cuda.driver.PlayedGroups.Phase;
import dev.tutti.cuda.nccl.NcclResult;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Fake NCCL messages: a send leaves a copy, for which the receiver waits. As with NCCL, a send of
 * more than 16 KiB waits until the receiver takes it.
 */
final class PlayedMessages {
  private static final long MOST_EARLY_BYTES = 16 << 10;

  private final FakeMemory memory;
  private final PlayedGroups groups;

  /** A message that was sent. */
  static final class Sent {
    private volatile byte[] data = {};
    private volatile boolean taken;
  }

  PlayedMessages(FakeMemory memory, PlayedGroups groups) {
    this.memory = memory;
    this.groups = groups;
  }

  int send(PlayedCommunicator communicator, long from, long bytes, int peer, long stream) {
    Sent message = new Sent();
    int result =
        groups.add(
            "ncclSend",
            communicator,
            stream,
            Phase.GIVE,
            () -> {
              message.data = memory.read(from, bytes);
              return communicator.world.messages(communicator.rank, peer).add(message);
            });
    if (result == NcclResult.SUCCESS && bytes > MOST_EARLY_BYTES) {
      groups.addRest(
          communicator,
          stream,
          Phase.AWAIT_TAKEN,
          () -> await(communicator, () -> message.taken ? message : null) != null);
    }
    return result;
  }

  /** Waits until something is there; returns null if the communicator is aborted first. */
  private static <T> @Nullable T await(PlayedCommunicator communicator, Supplier<@Nullable T> look)
      throws InterruptedException {
    T found = look.get();
    while (found == null && !communicator.isAborted()) {
      Thread.sleep(0, 50_000);
      found = look.get();
    }
    return found;
  }

  int receive(PlayedCommunicator communicator, long to, long bytes, int peer, long stream) {
    return groups.add(
        "ncclRecv",
        communicator,
        stream,
        Phase.TAKE,
        () -> {
          Sent message =
              await(communicator, communicator.world.messages(peer, communicator.rank)::poll);
          if (message == null) {
            return false;
          }
          assertThat(message.data).as("a message").hasSize((int) bytes);
          memory.write(to, message.data);
          message.taken = true;
          return true;
        });
  }
}
