package dev.tutti.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that the ranks of a node are replaced while the others continue. */
@Order(1)
class ElasticRanksTest {
  private final TestLaunches launches = new TestLaunches();

  private static LaunchPlan elastic(int restarts, String script) {
    return TestPlans.elastic(TestPlans.of(3, restarts, Optional.empty(), "sh", "-c", script));
  }

  @Test
  void anotherProcessTakesThePlaceOfOneThatFails(@TempDir Path folder) throws InterruptedException {
    Path file = folder.resolve("joined");
    String joiner = "echo joins $LOCAL_RANK $LOCAL_WORLD_SIZE $MASTER_PORT; touch " + file;
    String script =
        "case \"$RANK\" in 1) exit 3;; '') "
            + joiner
            + ";; *) "
            + TestLaunches.awaitFile(file)
            + ";; esac";
    assertThat(launches.run(elastic(1, script))).isZero();
    assertThat(launches.output.out(1)).containsExactly("joins 1 3 4711");
    assertThat(launches.messages)
        .singleElement()
        .asString()
        .matches(
            "rank 1 ended with exit code 3 after .*; another process joins in its place, restart 1"
                + " of 1");
  }

  @Test
  void onlySoManyAreReplaced() throws InterruptedException {
    String script = "case \"$RANK\" in 1|'') exit 3;; *) exec sleep 600;; esac";
    assertThat(launches.run(elastic(2, script))).isEqualTo(3);
    assertThat(launches.messages).hasSize(3);
    assertThat(launches.messages.get(1))
        .endsWith("another process joins in its place, restart 2 of 2");
    assertThat(launches.messages.get(2))
        .startsWith("the first to fail: rank 1 ended with exit code 3");
  }

  @Test
  void theLastProcessIsNotReplaced() throws InterruptedException {
    String script = "case \"$RANK\" in 1) sleep 0.5; exit 3;; *) exit 0;; esac";
    assertThat(launches.run(elastic(5, script))).isEqualTo(3);
    assertThat(launches.messages).hasSize(1);
  }
}
