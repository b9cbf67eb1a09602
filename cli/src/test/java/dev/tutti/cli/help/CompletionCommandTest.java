package dev.tutti.cli.help;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.ReduceOp;
import dev.tutti.cli.Main;
import dev.tutti.cli.TestTerminal;
import dev.tutti.runtime.settings.Providers;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Checks what the script for bash offers after the options of the command line. */
class CompletionCommandTest {
  private final TestTerminal terminal = new TestTerminal();

  private int tutti(String... arguments) {
    return terminal.tutti(Map.of(), arguments);
  }

  /** Returns what the script offers for an operand of a command or after its option. */
  private String offered(String where) {
    terminal.reset();
    assertThat(tutti("completion", "bash")).isZero();
    String script = terminal.out();
    Matcher entry =
        Pattern.compile("\\['" + where + "'\\]='([^']*)'")
            .matcher(script.substring(script.indexOf("local -A operands")));
    assertThat(entry.find()).as(where).isTrue();
    return entry.group(1);
  }

  @ParameterizedTest
  @CsvSource({
    "tutti run, <program>",
    "tutti run --log-dir, <file>",
    "tutti run --aot, <file>",
    "tutti run --nproc, ''",
    "tutti run --rdzv-backend, static c10d",
    "tutti bench --format, table json",
    "tutti bench --plot, <file>",
    "tutti store, add wait get keys serve set stat watch",
    "tutti store serve --data, <file>",
    "tutti store get, ''",
    "tutti doctor --format, table json",
    "tutti trace, <file>",
    "tutti completion, bash zsh fish",
    "tutti help, run bench calibrate store doctor trace status scale checkpoint token completion"
        + " help",
  })
  void offers(String where, String values) {
    assertThat(offered(where)).isEqualTo(values);
  }

  @Test
  void offersWhatBenchAccepts() {
    assertThat(offered("tutti bench"))
        .isEqualTo(
            "allReduce broadcast reduce allGather gather scatter reduceScatter allToAll sendRecv"
                + " barrier all");
    List<String> redops = List.of(offered("tutti bench --redop").split(" "));
    assertThat(redops).hasSize(8).doesNotHaveDuplicates();
    assertThat(redops).allSatisfy(each -> assertThat(ReduceOp.ofName(each)).isNotNull());
    List<String> types = List.of(offered("tutti bench --dtype").split(" "));
    assertThat(types.stream().map(DType::ofLabel)).containsExactly(DType.values());
    assertThat(offered("tutti bench --backend").split(" "))
        .contains("gloo")
        .containsExactlyInAnyOrderElementsOf(Providers.backends().keySet());
  }

  @Test
  void saysWhichShellsThereAre() {
    assertThat(tutti("completion", "ksh")).isEqualTo(Main.USAGE);
    assertThat(terminal.err())
        .isEqualTo("tutti completion: the shell must be bash, zsh or fish, not 'ksh'\n");
    assertThat(terminal.out()).isEmpty();
  }
}
