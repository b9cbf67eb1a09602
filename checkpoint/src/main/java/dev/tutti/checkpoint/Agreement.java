package dev.tutti.checkpoint;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.TuttiException;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Work that all ranks do together: a failure on one of them fails all, by the same exception. */
final class Agreement {
  private static final byte DONE = 0;
  private static final byte FAILED = 1;

  private final ProcessGroup group;
  private final Path folder;
  private final Executor collectives;

  /** Work that returns a result for the other ranks. */
  interface Task {
    byte[] run() throws IOException;
  }

  /**
   * Creates an agreement.
   *
   * @param folder the folder of the checkpoints, for messages
   * @param collectives runs collectives on a thread that nobody interrupts
   */
  Agreement(ProcessGroup group, Path folder, Executor collectives) {
    this.group = group;
    this.folder = folder;
    this.collectives = collectives;
  }

  /**
   * Runs a task on each rank.
   *
   * @param what what the ranks do, for the message
   * @return the results in the order of ranks
   */
  List<byte[]> onAll(String what, Task task) {
    TaskResult own = TaskResult.of(task);
    List<byte[]> all = exchange(what, () -> group.allGatherObject(own.message, Codec.BYTES));
    return results(what, all, own.failure);
  }

  /** Runs a task on rank 0, and returns its result on all ranks. */
  byte[] onFirst(String what, Task task) {
    TaskResult own = group.rank() == 0 ? TaskResult.of(task) : new TaskResult(new byte[0], null);
    byte[] first = exchange(what, () -> group.broadcastObject(own.message, 0, Codec.BYTES));
    return results(what, List.of(first), own.failure).getFirst();
  }

  /** Calls a collective; an interrupt of this thread neither ends nor delays it. */
  private <T> T exchange(String what, Supplier<T> call) {
    return await(what, CompletableFuture.supplyAsync(call, collectives));
  }

  /** Begins a collective after those begun before. */
  CompletableFuture<Void> start(Runnable call) {
    return CompletableFuture.runAsync(call, collectives);
  }

  /** Waits for a collective; an interrupt of this thread neither ends nor delays it. */
  <T> T await(String what, CompletableFuture<T> call) {
    try {
      return call.join();
    } catch (CompletionException e) {
      switch (e.getCause()) {
        case TuttiException failed ->
            throw new CheckpointException(
                "%s failed: %s; the checkpoints in %s remain, so start the job again"
                    .formatted(what, failed.getMessage(), folder),
                failed);
        case RuntimeException failed -> throw failed;
        case Error failed -> throw failed;
        case null, default -> throw e;
      }
    }
  }

  private static List<byte[]> results(String what, List<byte[]> messages, @Nullable Throwable own) {
    List<byte[]> results = new ArrayList<>();
    Map<String, List<Integer>> failures = new LinkedHashMap<>();
    for (int i = 0; i < messages.size(); i++) {
      byte[] content = Arrays.copyOfRange(messages.get(i), 1, messages.get(i).length);
      if (messages.get(i)[0] == FAILED) {
        failures
            .computeIfAbsent(new String(content, StandardCharsets.UTF_8), text -> new ArrayList<>())
            .add(i);
      }
      results.add(content);
    }
    if (!failures.isEmpty()) {
      List<String> texts = new ArrayList<>();
      failures.forEach((text, ranks) -> texts.add(ranks(ranks) + text));
      throw new CheckpointException(what + " failed: " + String.join("; ", texts), own);
    }
    return results;
  }

  private static String ranks(List<Integer> ranks) {
    String numbers = ranks.stream().map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.size() == 1 ? "rank " : "ranks ") + numbers;
  }

  /** What a task did on this rank: the message for the others, and its failure. */
  private static final class TaskResult {
    private final byte[] message;
    private final @Nullable Throwable failure;

    TaskResult(byte[] message, @Nullable Throwable failure) {
      this.message = message;
      this.failure = failure;
    }

    static TaskResult of(Task task) {
      try {
        return new TaskResult(message(DONE, task.run()), null);
      } catch (IOException | RuntimeException | Error e) {
        String text = " on host " + hostName() + ": " + describe(e);
        return new TaskResult(message(FAILED, text.getBytes(StandardCharsets.UTF_8)), e);
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
      case AccessDeniedException failed ->
          failed.getFile()
              + ": permission denied; let this user read and write there, or use another folder";
      case NoSuchFileException failed ->
          failed.getFile()
              + ": it or its folder is missing; let nobody remove what a job uses, or use another"
              + " folder";
      case FileSystemException failed -> {
        String reason = failed.getReason();
        yield failed.getFile()
            + ": "
            + withRemedy(
                reason == null ? failed.getClass().getSimpleName() : reason,
                "; mend that, or use another folder");
      }
      case ClosedByInterruptException failed ->
          "its thread was interrupted; call again when it is not";
      case CheckpointException failed -> String.valueOf(failed.getMessage());
      case IOException failed when failed.getMessage() != null ->
          withRemedy(String.valueOf(failed.getMessage()), "");
      case IllegalArgumentException failed when failed.getMessage() != null ->
          String.valueOf(failed.getMessage());
      default -> e.toString();
    };
  }

  private static String withRemedy(String failure, String other) {
    if (failure.endsWith("No space left on device") || failure.endsWith("Disk quota exceeded")) {
      return failure + "; free space there, or keep fewer checkpoints";
    }
    if (failure.endsWith("Read-only file system")) {
      return failure + "; choose a folder that can be written";
    }
    return failure + other;
  }

  static String hostName() {
    try {
      return InetAddress.getLocalHost().getHostName();
    } catch (IOException e) {
      return "localhost";
    }
  }
}
