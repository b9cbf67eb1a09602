package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.DType;
import dev.tutti.MissingRanks;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.gloo.transport.SelectorWaits;
import dev.tutti.spi.BackendProvider;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests collectives on one thread while another thread of the rank waits for a message. */
@Timeout(300)
class MixedThreadsTest {
  /** More bytes per message than a rank sends before its peer is ready. */
  private static final int LARGE = 50_000;

  private static final int ROUNDS = 5;

  @TempDir static Path directory;

  enum Medium {
    SOCKETS(3),
    TLS(3),
    SHARED_MEMORY(3),
    TWO_LEVELS(4);

    final int size;

    Medium(int size) {
      this.size = size;
    }

    void run(GlooWorld.Body<Void> body) throws Exception {
      String name = GlooProvider.SHARED_BYTES.name();
      Settings settings =
          switch (this) {
            case SOCKETS -> GlooWorld.settings(name, "0");
            case TLS -> new TlsWorld(directory, "authority").settings("rank", name, "0");
            case SHARED_MEMORY, TWO_LEVELS -> GlooWorld.settings();
          };
      BackendProvider provider =
          this == TWO_LEVELS ? new HostsProvider(directory, rank -> rank / 2) : new GlooProvider();
      GlooWorld.run(size, settings, provider, body);
    }
  }

  enum Collective {
    ALL_REDUCE {
      @Override
      void run(ProcessGroup group) {
        Tensor tensor = filled(LARGE, group.rank() + 1);
        group.allReduce(tensor);
        assertFilled(tensor, sum(group));
      }
    },
    ALL_REDUCE_SPARSE {
      @Override
      void run(ProcessGroup group) {
        int rank = group.rank();
        Tensor places = Tensor.allocate(DType.INT64, 1, 1).fill(rank);
        Tensor sparse = Tensor.sparse(places, filled(1, rank + 1), group.size());
        Tensor result = group.allReduce(sparse, ReduceOp.SUM, CallOptions.DEFAULT).result().get(0);
        assertThat(result.indices().numel()).isEqualTo(group.size());
        for (int i = 0; i < group.size(); i++) {
          assertThat(result.indices().getDouble(i)).isEqualTo(i);
          assertThat(result.values().getDouble(i)).isEqualTo(i + 1);
        }
      }
    },
    REDUCE {
      @Override
      void run(ProcessGroup group) {
        Tensor tensor = filled(LARGE, group.rank() + 1);
        group.reduce(tensor, ReduceOp.SUM, 1);
        if (group.rank() == 1) {
          assertFilled(tensor, sum(group));
        }
      }
    },
    BROADCAST {
      @Override
      void run(ProcessGroup group) {
        Tensor tensor = filled(1, group.rank());
        group.broadcast(tensor, 1);
        assertFilled(tensor, 1);
      }
    },
    ALL_GATHER {
      @Override
      void run(ProcessGroup group) {
        List<Tensor> outputs = outputs(group);
        group.allGather(outputs, filled(LARGE, group.rank()));
        assertRanks(outputs);
      }
    },
    GATHER {
      @Override
      void run(ProcessGroup group) {
        List<Tensor> outputs = group.rank() == 1 ? outputs(group) : List.of();
        group.gather(outputs, filled(LARGE, group.rank()), 1);
        assertRanks(outputs);
      }
    },
    SCATTER {
      @Override
      void run(ProcessGroup group) {
        Tensor output = filled(LARGE, -1);
        group.scatter(output, group.rank() == 1 ? inputs(group) : List.of(), 1);
        assertFilled(output, group.rank());
      }
    },
    REDUCE_SCATTER {
      @Override
      void run(ProcessGroup group) {
        Tensor output = filled(LARGE, -1);
        group.reduceScatter(output, inputs(group), ReduceOp.SUM);
        assertFilled(output, group.rank() * group.size());
      }
    },
    ALL_TO_ALL {
      @Override
      void run(ProcessGroup group) {
        List<Tensor> outputs = outputs(group);
        List<Tensor> inputs = new ArrayList<>();
        for (int i = 0; i < group.size(); i++) {
          inputs.add(filled(LARGE, group.rank()));
        }
        group.allToAll(outputs, inputs);
        assertRanks(outputs);
      }
    },
    BARRIER {
      @Override
      void run(ProcessGroup group) {
        group.barrier();
      }
    },
    MONITORED_BARRIER {
      @Override
      void run(ProcessGroup group) {
        group.monitoredBarrier(GlooWorld.TIMEOUT, MissingRanks.ALL);
      }
    };

    abstract void run(ProcessGroup group);
  }

  private static Tensor filled(long count, double value) {
    return Tensor.allocate(DType.FLOAT32, count).fill(value);
  }

  private static void assertFilled(Tensor tensor, double value) {
    assertThat(tensor.segment().mismatch(filled(tensor.numel(), value).segment())).isEqualTo(-1);
  }

  private static int sum(ProcessGroup group) {
    return group.size() * (group.size() + 1) / 2;
  }

  private static List<Tensor> outputs(ProcessGroup group) {
    return Stream.generate(() -> filled(LARGE, -1)).limit(group.size()).toList();
  }

  /** Returns a tensor for each rank that contains the rank's number. */
  private static List<Tensor> inputs(ProcessGroup group) {
    List<Tensor> inputs = new ArrayList<>();
    for (int rank = 0; rank < group.size(); rank++) {
      inputs.add(filled(LARGE, rank));
    }
    return inputs;
  }

  private static void assertRanks(List<Tensor> tensors) {
    for (int rank = 0; rank < tensors.size(); rank++) {
      assertFilled(tensors.get(rank), rank);
    }
  }

  static Stream<Arguments> cases() {
    return Stream.of(Medium.values())
        .flatMap(medium -> Stream.of(Collective.values()).map(c -> Arguments.of(medium, c)));
  }

  /**
   * Each rank sends its message only after the collective, while a receive waits for that message.
   */
  @ParameterizedTest
  @MethodSource("cases")
  void aCollectiveEndsWhileAReceiveWaits(Medium medium, Collective collective) throws Exception {
    CyclicBarrier allWait = new CyclicBarrier(medium.size);
    medium.run(
        group -> {
          int next = (group.rank() + 1) % medium.size;
          int previous = (group.rank() + medium.size - 1) % medium.size;
          Tensor in = filled(2, -1);
          FutureTask<Void> receive = new FutureTask<>(() -> group.recv(in, previous), null);
          SelectorWaits.await(Thread.ofPlatform().daemon().start(receive));
          allWait.await(60, TimeUnit.SECONDS);
          collective.run(group);
          group.send(filled(2, group.rank()), next);
          receive.get(60, TimeUnit.SECONDS);
          assertFilled(in, previous);
          return null;
        });
  }

  /** One thread per rank is enough if the collective is asynchronous. */
  @ParameterizedTest
  @EnumSource
  void aMessagePassesAllRanksBesideAnAsynchronousAllReduce(Medium medium) throws Exception {
    medium.run(
        group -> {
          int rank = group.rank();
          for (int round = 0; round < ROUNDS; round++) {
            Tensor tensor = filled(2 * LARGE, rank + 1);
            Tensor message = filled(10, rank == 0 ? 7 + round : -1);
            Work work = group.allReduce(tensor, ReduceOp.SUM, CallOptions.ASYNC);
            if (rank == 0) {
              work.await();
            } else {
              group.recv(message, rank - 1);
            }
            if (rank + 1 < medium.size) {
              group.send(message, rank + 1);
            }
            work.await();
            assertFilled(tensor, sum(group));
            assertFilled(message, 7 + round);
          }
          return null;
        });
  }

  @ParameterizedTest
  @EnumSource
  void aThreadReceivesWhatIsSentAfterAnAllReduceOfAnother(Medium medium) throws Exception {
    medium.run(
        group -> {
          int rank = group.rank();
          for (int round = 0; round < ROUNDS; round++) {
            Tensor tensor = filled(2 * LARGE, rank + 1);
            Tensor message = filled(10, -1);
            FutureTask<Void> receive =
                new FutureTask<>(() -> group.recv(message, Math.max(0, rank - 1)), null);
            if (rank > 0) {
              Thread.ofPlatform().daemon().start(receive);
            }
            group.allReduce(tensor);
            assertFilled(tensor, sum(group));
            if (rank + 1 < medium.size) {
              group.send(filled(10, rank), rank + 1);
            }
            if (rank > 0) {
              receive.get(60, TimeUnit.SECONDS);
              assertFilled(message, rank - 1);
            }
          }
          return null;
        });
  }
}
