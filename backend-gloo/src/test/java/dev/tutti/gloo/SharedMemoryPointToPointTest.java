package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.CallOptions;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests messages in shared memory, through rings of 4 KiB. */
class SharedMemoryPointToPointTest extends PointToPointTest {
  @Override
  String sharedBytes() {
    return "256K";
  }

  @Test
  void takesAllSourcesInTurn() throws Exception {
    int messages = 40;
    run(
        4,
        group -> {
          if (group.rank() != 0) {
            List<Work> works = new ArrayList<>();
            for (int i = 0; i < messages; i++) {
              works.add(group.send(filled(3, i), 0, 5, CallOptions.ASYNC));
            }
            group.barrier();
            works.forEach(Work::await);
            group.barrier();
            return null;
          }
          group.barrier();
          int[] taken = new int[4];
          for (int i = 0; i < 3 * messages; i++) {
            Tensor in = filled(3, -1);
            Work work = group.recvAnySource(in, 5, CallOptions.ASYNC);
            work.await();
            assertThat(in.toFloatArray()).containsOnly(taken[work.sourceRank()]++);
            // All messages were announced before the first was taken; the announcements are read in
            // turn.
            assertThat(IntStream.of(taken).skip(1).max().orElseThrow())
                .isLessThanOrEqualTo(IntStream.of(taken).skip(1).min().orElseThrow() + 3);
          }
          assertThat(taken).containsExactly(0, messages, messages, messages);
          group.barrier();
          return null;
        });
  }
}
