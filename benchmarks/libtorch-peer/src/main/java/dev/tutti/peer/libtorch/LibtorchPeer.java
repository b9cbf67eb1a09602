package dev.tutti.peer.libtorch;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A rank of a Gloo group inside libtorch, driven by a script.
 *
 * <p>The options are those of {@link PeerArguments}. The script comes from {@code --script} or from
 * standard input and may be sent line by line; empty lines and lines that begin with {@code #} do
 * nothing. {@code COUNT} is in elements, {@code COUNTS} is a comma-separated list, ranks are ranks
 * of the group the line runs on.
 *
 * <pre>
 * allreduce DTYPE REDOP COUNT                    broadcast DTYPE COUNT root=R
 * allreduce_coalesced DTYPE REDOP COUNTS         allgather | allgather_base DTYPE COUNT
 * allreduce_sparse DTYPE sum ROWS COLUMNS STORED allgather_into_tensor_coalesced DTYPE COUNTS
 * reduce DTYPE REDOP COUNT root=R                gather | scatter DTYPE COUNT root=R
 * reduce_scatter DTYPE REDOP COUNT               alltoall_base DTYPE COUNT
 * reduce_scatter_base DTYPE REDOP COUNT          alltoall_base DTYPE splits=a,b;c,d
 * reduce_scatter_tensor_coalesced DTYPE REDOP COUNTS
 * send TO TAG DTYPE COUNT                        recv FROM TAG DTYPE COUNT
 * recvany TAG DTYPE COUNT                        barrier | monitored_barrier
 * subgroup ranks=0,1 name=NAME [device=shared]   wait NAME
 * store_set | store_append | store_queue_push KEY VALUE
 * store_get | store_delete | store_queue_len | store_queue_pop KEY
 * store_add KEY AMOUNT                           store_compare_set KEY EXPECTED DESIRED
 * store_check | store_wait KEY…                  store_num_keys | store_list_keys
 * close
 * </pre>
 *
 * <p>COUNT is what one rank contributes or receives per peer: the input of a reduce-scatter, of a
 * scatter's root and of an even all-to-all has {@code size · COUNT} elements, as does the result of
 * an all-gather and of a gather's root. Row {@code i} of {@code splits} holds the numbers of
 * elements that rank {@code i} sends to each rank. In a coalesced reduce-scatter and all-gather
 * each of COUNTS is such a COUNT. Stored row {@code i} of the sparse tensor of rank {@code r} is
 * row {@code (r + 3·i) mod ROWS}; the result is reported as a dense tensor.
 *
 * <p>Options of any collective: {@code seed=S}, {@code data=fraction}, {@code group=NAME} (a member
 * of no such group skips the line), {@code timeout=MS}, {@code async=NAME} (start only; a later
 * {@code wait NAME} reports the result). A {@code REDOP} is sum, avg, product, min, max, band, bor
 * or bxor. {@link PeerData} defines the input. Store operations act on the store without prefixes;
 * {@code -} stands for the empty value.
 *
 * <p>Output: {@code LOADED} when libtorch is loaded; {@code PORT n} if this process hosts the TCP
 * store; {@code READY} when the group is set up. Then each line yields {@code OK line op crc
 * values…} with the CRC-32 of the result bytes, the first four components of the result, and {@code
 * name=value} facts. On failure it yields {@code ERROR line message}, after which the process exits
 * with status 3 unless {@code --keep-going} was given. {@code close} runs a barrier on the default
 * group, reports, and exits. If the script ends without it, the process exits at once. A native
 * call that takes longer than five times the limit, and longer than a minute, ends the process with
 * status 4.
 *
 * <p>With {@code --hold} as the only option, the first line of standard input holds the options,
 * separated by tabs, so that a process can be loaded before its purpose is known.
 */
public final class LibtorchPeer {
  static final String HOLD = "--hold";
  private static final int SLACK_MILLIS = 60_000;

  private final PeerArguments arguments;
  private final PeerOutput out;
  private final PeerWatchdog watchdog = new PeerWatchdog();
  private @Nullable PeerSession session;
  private boolean failed;

  private LibtorchPeer(PeerArguments arguments, PeerOutput out) {
    this.arguments = arguments;
    this.out = out;
  }

  /**
   * Runs a script and halts the process.
   *
   * @param args options of {@link PeerArguments}
   * @throws IOException if the script cannot be read
   */
  public static void main(String[] args) throws IOException {
    PeerOutput out = new PeerOutput();
    if (List.of(args).equals(List.of(HOLD))) {
      load(out);
      try (BufferedReader script = new BufferedReader(new InputStreamReader(System.in, UTF_8))) {
        String options = script.readLine();
        if (options != null) {
          run(PeerArguments.parse(options.split("\t", -1)), out, script);
        }
      }
      return;
    }
    PeerArguments arguments = PeerArguments.parse(args);
    load(out);
    try (BufferedReader script =
        arguments.script().isEmpty()
            ? new BufferedReader(new InputStreamReader(System.in, UTF_8))
            : Files.newBufferedReader(Path.of(arguments.script()))) {
      run(arguments, out, script);
    }
  }

  private static void load(PeerOutput out) {
    LibtorchLoader.load();
    out.line("LOADED");
  }

  private static void run(PeerArguments arguments, PeerOutput out, BufferedReader script)
      throws IOException {
    LibtorchPeer peer = new LibtorchPeer(arguments, out);
    peer.run(script);
    peer.exit();
  }

  private void run(BufferedReader script) throws IOException {
    guarded(0, this::open);
    int number = 0;
    for (String text = script.readLine(); text != null; text = script.readLine()) {
      number++;
      int line = number;
      String command = text.strip();
      if (command.equals("close")) {
        guarded(line, () -> close(line));
        return;
      }
      if (!command.isEmpty() && !command.startsWith("#")) {
        guarded(line, () -> execute(line, command));
      }
    }
  }

  private void open() {
    session = PeerSession.open(arguments, out);
    out.line("READY " + arguments.rank());
  }

  private void execute(int line, String command) {
    out.line(opened().run(ScriptLine.parse(line, command)).toString());
  }

  private void close(int line) {
    opened().close();
    out.line("OK " + line + " close " + PeerData.crc(new byte[0]));
  }

  private PeerSession opened() {
    if (session == null) {
      throw new IllegalStateException("there is no group yet");
    }
    return session;
  }

  private void guarded(int line, Runnable step) {
    long limit = 5L * arguments.timeoutMillis() + SLACK_MILLIS;
    Runnable report =
        () -> out.line("ERROR " + line + " no return from libtorch within " + limit + " ms");
    try (PeerWatchdog.Guard _ = watchdog.guard(limit, report)) {
      step.run();
    } catch (RuntimeException | LinkageError e) {
      failed = true;
      out.line("ERROR " + line + " " + PeerOutput.messageOf(e));
      if (!arguments.keepGoing() || session == null) {
        exit();
      }
    }
  }

  /** Skips the destructors of libtorch's globals; their order is not safe while groups are live. */
  private void exit() {
    Runtime.getRuntime().halt(failed ? PeerWatchdog.EXIT_ERROR : 0);
  }
}
