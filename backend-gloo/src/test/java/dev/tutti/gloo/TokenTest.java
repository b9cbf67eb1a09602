package dev.tutti.gloo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import dev.tutti.store.HashStore;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tests groups whose ranks authenticate each other with a token. */
@Timeout(300)
class TokenTest {

  @ParameterizedTest
  @CsvSource({"2, 0", "4, 0", "2, 16M", "3, 16M"})
  void ranksWithTheSameTokenWorkTogether(int size, String sharedBytes) throws Exception {
    List<Float> sums =
        GlooWorld.run(
            size,
            GlooWorld.settings(
                "TUTTI_TOKEN", "the token of this job", "TUTTI_GLOO_SHARED_BYTES", sharedBytes),
            group -> {
              Tensor tensor = Tensor.of(group.rank() + 1f, 10f);
              group.allReduce(tensor);
              group
                  .subgroup(List.of(0, 1))
                  .ifPresent(
                      pair -> {
                        Tensor ones = Tensor.of(1f);
                        pair.allReduce(ones);
                        assertThat(ones.toFloatArray()).containsExactly(2f);
                      });
              return tensor.toFloatArray()[0];
            });
    assertThat(sums).hasSize(size).containsOnly(size * (size + 1) / 2f);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "one token of a job | another token of a job | did not prove possession of the token of"
            + " this rank",
        "one token of a job | '' | TUTTI_TOKEN is set for rank 0, but not for rank 1",
        "'' | one token of a job | TUTTI_TOKEN is set for rank 1, but not for rank 0"
      })
  void allRanksHearWhoseTokenDiffers(String token0, String token1, String why) throws Exception {
    HashStore store = new HashStore();
    List<Throwable> failures =
        GlooWorld.inParallel(
            2,
            rank -> {
              GroupOptions options =
                  GlooWorld.options(
                      store,
                      rank,
                      2,
                      GlooWorld.settings("TUTTI_TOKEN", rank == 0 ? token0 : token1));
              try (ProcessGroup group = ProcessGroup.init(options)) {
                return new AssertionError("rank " + group.rank() + " is in");
              } catch (TuttiException e) {
                return e;
              }
            });
    assertThat(failures)
        .allSatisfy(e -> assertThat(e).isInstanceOf(TuttiException.class))
        .allSatisfy(e -> assertThat(e).hasMessageContaining("TUTTI_TOKEN"))
        .anySatisfy(e -> assertThat(e).hasMessageContaining(why))
        .noneSatisfy(e -> assertThat(e.toString()).contains("another token"));
  }
}
