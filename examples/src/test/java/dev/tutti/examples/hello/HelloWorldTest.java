package dev.tutti.examples.hello;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.examples.Printed;
import org.junit.jupiter.api.Test;

class HelloWorldTest {
  @Test
  void eachRankPrintsTheSum() throws Exception {
    assertThat(Printed.by(HelloWorld::main))
        .containsExactlyInAnyOrder(
            "rank 0 of 4: the rank numbers add up to 6",
            "rank 1 of 4: the rank numbers add up to 6",
            "rank 2 of 4: the rank numbers add up to 6",
            "rank 3 of 4: the rank numbers add up to 6");
  }
}
