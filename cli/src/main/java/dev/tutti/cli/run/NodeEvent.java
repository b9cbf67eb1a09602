package dev.tutti.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.cli.run.LaunchRendezvous.Verdict;
import dev.tutti.spi.Printable;

/** An entry of the log of a job whose nodes come and go. */
sealed interface NodeEvent {
  /** Returns the number of the node that it names. */
  int node();

  /**
   * A node wants to take part.
   *
   * @param node its number
   * @param launcher the name of its launcher, which no other has
   * @param ranks how many ranks it starts
   * @param host where its processes are
   */
  record Came(int node, String launcher, int ranks, String host) implements NodeEvent {}

  /** All ranks of a node ended with exit code 0. */
  record Done(int node, String launcher) implements NodeEvent {}

  /** A node takes no part any more. */
  record Gone(int node, String launcher, String why) implements NodeEvent {}

  /** The job ended on all nodes. */
  record Ended(Verdict verdict) implements NodeEvent {
    @Override
    public int node() {
      return verdict.node();
    }
  }

  /** Encodes the event with a field a line; a text is last and may have several lines. */
  default byte[] encode() {
    String text =
        switch (this) {
          case Came(int node, String launcher, int ranks, String host) ->
              String.join("\n", "came", "" + node, launcher, "" + ranks, host);
          case Done(int node, String launcher) -> String.join("\n", "done", "" + node, launcher);
          case Gone(int node, String launcher, String why) ->
              String.join("\n", "gone", "" + node, launcher, why);
          case Ended(Verdict verdict) -> "ended\n" + new String(verdict.encode(), UTF_8);
        };
    return text.getBytes(UTF_8);
  }

  static NodeEvent decode(byte[] bytes) {
    String[] parts = new String(bytes, UTF_8).split("\n", 2);
    String rest = parts[1];
    String[] fields = rest.split("\n", parts[0].equals("gone") ? 3 : 4);
    return switch (parts[0]) {
      case "came" ->
          new Came(Integer.parseInt(fields[0]), fields[1], Integer.parseInt(fields[2]), fields[3]);
      case "done" -> new Done(Integer.parseInt(fields[0]), fields[1]);
      case "gone" -> new Gone(Integer.parseInt(fields[0]), fields[1], Printable.lines(fields[2]));
      case "ended" -> new Ended(Verdict.decode(rest.getBytes(UTF_8)));
      default -> throw new IllegalArgumentException("no event of nodes: " + parts[0]);
    };
  }
}
