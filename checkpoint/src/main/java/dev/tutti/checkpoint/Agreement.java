package dev.tutti.checkpoint;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.TuttiException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Work that all ranks do together: a failure on one of them fails all, by the same exception. */
final class Agreement {
  private static final byte DONE = 0;
  private static final byte FAILED = 1;

  private final ProcessGroup group;

  /** Work that returns a result for the other ranks. */
  interface Task {
    byte[] run() throws IOException;
  }

  Agreement(ProcessGroup group) {
    this.group = group;
  }

  /**
   * Runs a task on each rank.
   *
   * @param what what the ranks do, for the message
   * @return the results in the order of ranks
   */
  List<byte[]> onAll(String what, Task task) {
    Outcome own = Outcome.of(task);
    List<byte[]> all = exchange(what, () -> group.allGatherObject(own.message, Codec.BYTES));
    return results(what, all, own.failure);
  }

  /** Runs a task on rank 0, and returns its result on all ranks. */
  byte[] onFirst(String what, Task task) {
    Outcome own = group.rank() == 0 ? Outcome.of(task) : new Outcome(new byte[0], null);
    byte[] first = exchange(what, () -> group.broadcastObject(own.message, 0, Codec.BYTES));
    return results(what, List.of(first), own.failure).getFirst();
  }

  private static <T> T exchange(String what, Supplier<T> call) {
    try {
      return call.get();
    } catch (TuttiException e) {
      throw new CheckpointException(what + " failed: " + e.getMessage(), e);
    }
  }

  private static List<byte[]> results(String what, List<byte[]> messages, @Nullable Throwable own) {
    List<byte[]> results = new ArrayList<>();
    List<String> failures = new ArrayList<>();
    for (int i = 0; i < messages.size(); i++) {
      byte[] content = Arrays.copyOfRange(messages.get(i), 1, messages.get(i).length);
      if (messages.get(i)[0] == FAILED) {
        failures.add("rank %d%s".formatted(i, new String(content, StandardCharsets.UTF_8)));
      }
      results.add(content);
    }
    if (!failures.isEmpty()) {
      throw new CheckpointException(what + " failed: " + String.join("; ", failures), own);
    }
    return results;
  }

  /** What a task did on this rank: the message for the others, and its failure. */
  private static final class Outcome {
    private final byte[] message;
    private final @Nullable Throwable failure;

    Outcome(byte[] message, @Nullable Throwable failure) {
      this.message = message;
      this.failure = failure;
    }

    static Outcome of(Task task) {
      try {
        return new Outcome(message(DONE, task.run()), null);
      } catch (IOException | RuntimeException | Error e) {
        String text = " on host " + hostName() + ": " + describe(e);
        return new Outcome(message(FAILED, text.getBytes(StandardCharsets.UTF_8)), e);
      }
    }

    private static byte[] message(byte kind, byte[] content) {
      byte[] message = new byte[content.length + 1];
      message[0] = kind;
      System.arraycopy(content, 0, message, 1, content.length);
      return message;
    }
  }

  /** Returns the message of an exception; those of the file system have the path and maybe more. */
  private static String describe(Throwable e) {
    return switch (e) {
      case FileSystemException failed -> {
        String reason = failed.getReason();
        yield failed.getFile()
            + ": "
            + (reason == null ? failed.getClass().getSimpleName() : reason);
      }
      case CheckpointException failed -> String.valueOf(failed.getMessage());
      case IOException failed when failed.getMessage() != null ->
          String.valueOf(failed.getMessage());
      default -> e.toString();
    };
  }

  static String hostName() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (IOException e) {
      return "localhost";
    }
  }
}
