package dev.tutti.contracts.fuzz;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Tensor;
import dev.tutti.contracts.ContractSubject;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.AbstractStringAssert;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Tests that faulty backends are found, and that the reported programs can be run again. */
@Timeout(value = 10, unit = TimeUnit.MINUTES)
@Execution(ExecutionMode.CONCURRENT)
@Order(1)
class FuzzerTest {
  static final Duration PATIENCE = Duration.ofSeconds(5);

  /** The patience with programs that do not hang. */
  private static final Duration LONGEST_PATIENCE = Duration.ofSeconds(60);

  /** A program of which one step can be left out: each run that hangs takes the patience. */
  static final Program SMALL =
      new Program(
          5,
          3,
          List.of(
              Step.of(0, StepKind.ALL_REDUCE, 3, 1),
              Step.of(1, StepKind.MESSAGE, 3, 1).withPeers(0, 2, 1),
              Step.of(2, StepKind.BARRIER, 3)));

  record Threes(FaultyBackendProvider provider) implements ContractSubject {
    @Override
    public int[] worldSizes() {
      return new int[] {3};
    }
  }

  private static AbstractStringAssert<?> failure(
      String operation, int rank, FaultyBackendProvider.Fault fault) {
    ContractSubject subject = new Threes(new FaultyBackendProvider(operation, rank, fault));
    return minimized(
        new Fuzzer(subject, new ThreadHost(subject), LONGEST_PATIENCE, PATIENCE),
        fuzzer -> fuzzer.fuzz(1, Duration.ofMinutes(2)));
  }

  /** Runs programs until one fails, and returns the message. */
  static AbstractStringAssert<?> minimized(Fuzzer fuzzer, Fuzzer.TestBody body) {
    AssertionError[] thrown = new AssertionError[1];
    assertThatThrownBy(() -> body.run(fuzzer))
        .isInstanceOfSatisfying(AssertionError.class, e -> thrown[0] = e);
    String message = String.valueOf(thrown[0].getMessage());
    Program smallest = printed(message);
    assertThat(message).containsPattern("when run again (FAILED|HUNG)\\)");
    assertThat(smallest.steps()).as("steps of %s", smallest).hasSizeLessThanOrEqualTo(2);
    return assertThat(message).contains("Its seed is " + smallest.seed());
  }

  /** Reads the first program in a report. */
  private static Program printed(String message) {
    List<String> lines =
        message.lines().dropWhile(line -> !line.startsWith("program seed=")).toList();
    List<String> steps =
        lines.stream().skip(1).takeWhile(l -> l.matches("\\d+ [A-Z_]+( .*)?")).toList();
    return Program.parse(lines.get(0) + "\n" + String.join("\n", steps));
  }

  @Test
  void aWrongElementIsFound() {
    failure(
            "allReduce",
            1,
            (right, op) -> {
              right.run();
              Tensor tensor = op.call().output();
              if (tensor.numel() > 100) {
                long bits = tensor.flatten().segment().get(ValueLayout.JAVA_BYTE, 0);
                tensor.flatten().segment().set(ValueLayout.JAVA_BYTE, 0, (byte) (bits ^ 1));
              }
            })
        .contains("tensor of rank 1", "element 0 is", "expected");
  }

  @Test
  void aByteWrittenBesideAViewIsFound() {
    failure(
            "broadcast",
            2,
            (right, op) -> {
              right.run();
              MemorySegment segment = op.call().output().segment();
              // Memory is aligned to 64 bytes, so this is a view into the middle of a larger block.
              if (segment.isNative() && segment.address() % Tensor.ALIGNMENT != 0) {
                MemorySegment.ofAddress(segment.address() - 1)
                    .reinterpret(1)
                    .set(ValueLayout.JAVA_BYTE, 0, (byte) 0);
              }
            })
        .contains("outside the elements");
  }

  @Test
  @Tag("full")
  void anOperationThatHangsIsFound() {
    CountDownLatch never = new CountDownLatch(1);
    ContractSubject subject =
        new Threes(new FaultyBackendProvider("barrier", 1, (_, _) -> never.await()));
    minimized(
            new Fuzzer(subject, new ThreadHost(subject), PATIENCE, PATIENCE),
            fuzzer -> fuzzer.check(SMALL))
        .contains("HUNG", "rank 1, thread 0: step", "BARRIER", "at java.base");
  }

  @Test
  void aRightBackendPasses() throws Exception {
    ContractSubject subject =
        new Threes(new FaultyBackendProvider("barrier", 1, (right, _) -> right.run()));
    Fuzzer fuzzer = new Fuzzer(subject, new ThreadHost(subject), Duration.ofSeconds(60));
    assertThat(fuzzer.fuzz(7, Duration.ofNanos(1)))
        .startsWith("seeds 7 to 7: 1 programs, ")
        .endsWith("none failed");
  }
}
