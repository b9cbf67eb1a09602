package dev.tutti.gloo.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.gloo.transport.Endpoint;
import dev.tutti.gloo.transport.RecordingEndpoint;
import dev.tutti.gloo.transport.RecordingEndpoint.Message;
import dev.tutti.gloo.transport.TestOperation;
import dev.tutti.spi.OperationPlan;
import dev.tutti.spi.OperationPlan.Step;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Tests that plans have the messages of the algorithms, which run here on an endpoint that records.
 */
class SocketPlansTest {
  private static final long PIECE = 64 * 1024;

  private interface Run {
    void on(Endpoint endpoint, Tensor tensor) throws Exception;
  }

  /** The most messages, and the most bytes, that a rank sends. */
  private record Traffic(long messages, double bytes) {}

  private static Traffic busiest(int size, int elements, Run run) throws Exception {
    long messages = 0;
    double bytes = 0;
    for (int rank = 0; rank < size; rank++) {
      RecordingEndpoint endpoint = new RecordingEndpoint(rank, size);
      run.on(endpoint, Tensor.allocate(DType.FLOAT32, elements));
      List<Message> sent = endpoint.messages().stream().filter(Message::sent).toList();
      messages = Math.max(messages, sent.size());
      bytes = Math.max(bytes, sent.stream().mapToDouble(Message::bytes).sum());
    }
    return new Traffic(messages, bytes);
  }

  private static Traffic planned(List<Step> steps) {
    return new Traffic(
        Math.round(steps.stream().mapToDouble(step -> step.rounds() * step.messages()).sum()),
        steps.stream().mapToDouble(step -> step.rounds() * step.messages() * step.bytes()).sum());
  }

  private static void assertSame(
      Traffic planned, Traffic sent, long moreMessages, double moreBytes) {
    assertThat(planned.messages()).isEqualTo(sent.messages() + moreMessages);
    assertThat(planned.bytes()).isCloseTo(sent.bytes() + moreBytes, within(1e-3));
  }

  private static TestOperation operation() {
    return new TestOperation(Duration.ofHours(1));
  }

  /** Returns a number of elements that all algorithms cut evenly. */
  private static int elements(int size, int factor) {
    return size * 16 * factor;
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 8, 9, 16})
  void ringsSendWhatTheyPlan(int size) throws Exception {
    for (int factor : new int[] {1, 100, 4096}) {
      int elements = elements(size, factor);
      long bytes = 4L * elements;
      assertSame(
          planned(RingAllReduce.steps(size, bytes, 4)),
          busiest(
              size,
              elements,
              (endpoint, tensor) ->
                  new RingAllReduce(endpoint).run(operation(), 0, tensor, ReduceOp.SUM)),
          0,
          0);
      assertSame(
          planned(RingAllGather.steps(size, (double) bytes / size)),
          busiest(
              size,
              elements,
              (endpoint, tensor) ->
                  new RingAllGather(endpoint)
                      .run(operation(), 0, new TensorParts(size).ofEqual(tensor))),
          0,
          0);
      // The root receives N - 1 messages at the end, where each other rank sends one.
      assertSame(
          planned(RingReduce.steps(size, bytes, 4)),
          busiest(
              size,
              elements,
              (endpoint, tensor) ->
                  new RingReduce(endpoint, new Scratch())
                      .run(operation(), 0, tensor, ReduceOp.SUM, 0)),
          size - 2,
          (size - 2) * (double) bytes / size);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 8, 9, 16})
  void allReducesOfPowersOfTwoSendWhatTheyPlan(int size) throws Exception {
    int elements = elements(size, 1024);
    long bytes = 4L * elements;
    // The elements of a rank that takes no part arrive in a step of their own.
    int folded = Integer.bitCount(size) == 1 ? 0 : 1;
    assertSame(
        planned(RecursiveDoublingAllReduce.steps(size, (double) bytes)),
        busiest(
            size,
            elements,
            (endpoint, tensor) ->
                new RecursiveDoublingAllReduce(endpoint, new Scratch())
                    .run(operation(), 0, tensor, ReduceOp.SUM)),
        folded,
        (double) (folded * bytes));
    for (long piece : new long[] {Long.MAX_VALUE, PIECE}) {
      assertSame(
          planned(HalvingDoublingAllReduce.steps(size, bytes, piece)),
          busiest(
              size,
              elements,
              (endpoint, tensor) ->
                  new HalvingDoublingAllReduce(endpoint, piece)
                      .run(operation(), 0, tensor, ReduceOp.SUM)),
          folded,
          (double) (folded * bytes));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 8, 9, 16})
  void treesAndChainsSendWhatTheyPlan(int size) throws Exception {
    int elements = elements(size, 4096);
    long bytes = 4L * elements;
    assertSame(
        planned(BinomialBroadcast.steps(size, (double) bytes)),
        busiest(
            size,
            elements,
            (endpoint, tensor) ->
                new BinomialBroadcast(endpoint).run(operation(), 0, tensor.segment(), bytes, 0)),
        0,
        0);
    long chunk = Math.min(256 << 10, bytes);
    assertSame(
        planned(ChainBroadcast.steps(size, bytes)),
        busiest(
            size,
            elements,
            (endpoint, tensor) ->
                new ChainBroadcast(endpoint).run(operation(), 0, tensor.segment(), bytes, 0)),
        size - 2,
        (size - 2) * (double) chunk);
    assertSame(
        planned(BruckAllGather.steps(size, (double) bytes / size)),
        busiest(
            size,
            elements,
            (endpoint, tensor) ->
                new BruckAllGather(endpoint, new Scratch())
                    .run(operation(), 0, new TensorParts(size).ofEqual(tensor))),
        0,
        0);
    assertSame(
        planned(DisseminationBarrier.steps(size)),
        busiest(
            size,
            elements,
            (endpoint, tensor) -> new DisseminationBarrier(endpoint).run(operation(), 0)),
        0,
        0);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 4, 5, 8})
  void pairsSendWhatTheyPlan(int size) throws Exception {
    int elements = 3 << 18;
    assertSame(
        planned(PairwiseReduceScatter.steps(size, 4.0 * elements)),
        busiest(
            size,
            elements,
            (endpoint, output) -> {
              List<Tensor> inputs = new ArrayList<>();
              for (int rank = 0; rank < size; rank++) {
                inputs.add(Tensor.allocate(DType.FLOAT32, elements));
              }
              new PairwiseReduceScatter(endpoint, new Scratch())
                  .run(operation(), 0, output, inputs, ReduceOp.SUM);
            }),
        0,
        0);
  }

  @Test
  void binomialReduceReceivesWhatItPlans() throws Exception {
    RecordingEndpoint root = new RecordingEndpoint(0, 8);
    new BinomialReduce(root, new Scratch())
        .run(operation(), 0, Tensor.allocate(DType.FLOAT32, 25), ReduceOp.SUM, 0);
    assertThat(planned(BinomialReduce.steps(8, 100)))
        .isEqualTo(new Traffic(root.messages().size(), 300));
  }

  @Test
  void theTableDecides() {
    AlgorithmTable table = AlgorithmTable.DEFAULT;
    LongStream.of(8, 64 << 10, (64 << 10) + 4, 512 << 10, 64 << 20, 1L << 30)
        .forEach(
            bytes -> {
              for (int ranks : new int[] {2, 6, 64, 100_000}) {
                OperationPlan plan =
                    SocketPlans.plan(table, OpType.ALL_REDUCE, bytes, ranks).orElseThrow();
                assertThat(plan.path())
                    .isEqualTo(table.choose(OpType.ALL_REDUCE, bytes, ranks).path());
                assertThat(plan.steps()).isNotEmpty();
              }
            });
    String ring = "allReduce=ring";
    assertThat(SocketPlans.plan(table.with(ring), OpType.ALL_REDUCE, 8, 4).orElseThrow().path())
        .isEqualTo(Algorithm.RING.path());
  }

  @Test
  void oneRankSendsNothing() {
    for (OpType type :
        List.of(
            OpType.ALL_REDUCE,
            OpType.BROADCAST,
            OpType.ALL_GATHER,
            OpType.REDUCE_SCATTER,
            OpType.ALL_TO_ALL,
            OpType.BARRIER)) {
      assertThat(SocketPlans.plan(AlgorithmTable.DEFAULT, type, 1024, 1).orElseThrow().steps())
          .as(type.label())
          .isEmpty();
    }
  }
}
