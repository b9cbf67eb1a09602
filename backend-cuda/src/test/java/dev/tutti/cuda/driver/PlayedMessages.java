package dev.tutti.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.ConcurrentLinkedQueue;

/** Fake NCCL messages: a send leaves a copy, for which the receiver waits. */
final class PlayedMessages {
  private final FakeMemory memory;
  private final PlayedGroups groups;

  PlayedMessages(FakeMemory memory, PlayedGroups groups) {
    this.memory = memory;
    this.groups = groups;
  }

  int send(PlayedCommunicator communicator, long from, long bytes, int peer, long stream) {
    return groups.add(
        "ncclSend",
        communicator,
        stream,
        true,
        () -> communicator.world.messages(communicator.rank, peer).add(memory.read(from, bytes)));
  }

  int receive(PlayedCommunicator communicator, long to, long bytes, int peer, long stream) {
    return groups.add(
        "ncclRecv",
        communicator,
        stream,
        false,
        () -> {
          ConcurrentLinkedQueue<byte[]> messages =
              communicator.world.messages(peer, communicator.rank);
          byte[] message = messages.poll();
          while (message == null) {
            if (communicator.isAborted()) {
              return false;
            }
            Thread.sleep(0, 50_000);
            message = messages.poll();
          }
          assertThat(message).as("a message").hasSize((int) bytes);
          memory.write(to, message);
          return true;
        });
  }
}
