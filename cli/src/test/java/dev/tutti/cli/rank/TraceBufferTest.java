package dev.tutti.cli.rank;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class TraceBufferTest {
  private static List<String> texts(List<byte[]> lines) {
    return lines.stream().map(line -> new String(line, UTF_8)).toList();
  }

  @Test
  void keepsATraceTogetherAndOtherLinesApart() {
    List<List<String>> blocks = new ArrayList<>();
    TraceBuffer buffer = new TraceBuffer(lines -> blocks.add(texts(lines)));
    for (String line :
        List.of(
            "step 1",
            "Exception in thread \"main\" a.b.C: words",
            "\tat a.b.C.d(C.java:1)",
            "Caused by: java.io.IOException: no",
            "\t... 3 more",
            "step 2")) {
      buffer.accept(line.getBytes(UTF_8));
    }
    assertThat(buffer.isHolding()).isFalse();
    assertThat(blocks)
        .containsExactly(
            List.of("step 1"),
            List.of(
                "Exception in thread \"main\" a.b.C: words",
                "\tat a.b.C.d(C.java:1)",
                "Caused by: java.io.IOException: no",
                "\t... 3 more"),
            List.of("step 2"));
  }

  @Test
  void handsOnATraceThatNothingFollows() throws Exception {
    BlockingQueue<List<String>> blocks = new LinkedBlockingQueue<>();
    PipedOutputStream out = new PipedOutputStream();
    TraceBuffer buffer = new TraceBuffer(lines -> blocks.add(texts(lines)));
    Thread pump =
        Thread.ofPlatform().daemon().start(new LinePump(new PipedInputStream(out), buffer));
    out.write("a.b.CException: x\n\tat a.b.C.d(C.java:1)\n".getBytes(UTF_8));
    out.flush();
    assertThat(blocks.poll(60, TimeUnit.SECONDS))
        .containsExactly("a.b.CException: x", "\tat a.b.C.d(C.java:1)");
    assertThat(pump.isAlive()).isTrue();
    out.close();
    pump.join(60_000);
    assertThat(pump.isAlive()).isFalse();
  }
}
