package dev.tutti.runtime.operation;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import dev.tutti.spi.Printable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * Where a rank stands in a group, as it writes it for the others after a time-out and when it
 * closes the group.
 *
 * @param closed whether the rank closed the group without a failure
 * @param issued the number of its last collective, starting at 1
 * @param refusal the reason why its last call was refused, or empty
 * @param joining the call in which it waits for others to make a group with it, or empty
 * @param elsewhere what it does outside of the group, or empty
 * @param sent the number of messages that it has begun to send, by rank
 * @param received the number of messages that it has received, by rank
 * @param pending the messages and collectives that have not ended
 * @param recent the last collectives, oldest first
 * @param unreached the ranks to which it cannot connect, as far as it has tried
 */
public record RankProgress(
    boolean closed,
    long issued,
    String refusal,
    String joining,
    String elsewhere,
    Map<Integer, Long> sent,
    Map<Integer, Long> received,
    List<Pending> pending,
    List<Issued> recent,
    List<Integer> unreached) {
  private static final String DEFAULT_OP = ReduceOp.Kind.SUM.name();
  private static final String REFUSED = "refused ";
  private static final String JOINING = "joining ";
  private static final String ELSEWHERE = "elsewhere ";
  private static final int MOST_CHARS = 1000;
  private static final int MOST_PARTS = 32;

  /**
   * An operation that has not ended.
   *
   * @param type the type of the operation
   * @param sequence the number of the operation
   * @param peer the other rank of a message, or -1
   * @param tag the tag of a message
   */
  public record Pending(OpType type, long sequence, int peer, int tag) {
    public String describe() {
      return type.label()
          + " #"
          + sequence
          + (type.isPointToPoint() ? ofMessage(peer, type, tag) : "");
    }
  }

  /**
   * A collective that was issued.
   *
   * @param type the type of the collective
   * @param sequence the number of the collective
   * @param reduceOp the name of the reduction operator, or empty
   * @param dtype the type of its elements, or empty
   * @param numel how many elements this rank contributed; -1 if that does not matter
   * @param root the rank that sends to all ranks or receives from them; -1 if there is none
   * @param parts how many elements each rank gives or gets, from {@link #parts}; or empty
   */
  public record Issued(
      OpType type,
      long sequence,
      String reduceOp,
      String dtype,
      long numel,
      int root,
      String parts) {
    public String describe() {
      String what = type.label() + " #" + sequence + (dtype.isEmpty() ? "" : " " + dtype);
      String size = parts.isEmpty() && numel >= 0 ? String.valueOf(numel) : parts;
      return what
          + (dtype.isEmpty() || size.isEmpty() ? "" : "[" + size + "]")
          + (reduceOp.isEmpty() || reduceOp.equals(DEFAULT_OP) ? "" : " by " + reduceOp)
          + (root < 0 ? "" : " with root " + root);
    }
  }

  /**
   * Describes how many elements each rank gives or gets in an operation that has a tensor or a
   * number of rows for each of several ranks.
   *
   * @param inputs the shapes of the inputs
   * @param outputs the shapes of the outputs
   * @return the numbers in rank order, as in {@code 3+0+5}; empty for other operations
   */
  public static String parts(OpType type, List<List<Long>> inputs, List<List<Long>> outputs) {
    List<List<Long>> shapes =
        switch (type) {
          case ALL_GATHER, ALL_GATHER_INTO -> outputs;
          case REDUCE_SCATTER, REDUCE_SCATTER_INTO -> inputs;
          default -> List.of();
        };
    if (shapes.size() < 2) {
      return "";
    }
    List<Long> numels = shapes.stream().map(RankProgress::numel).toList();
    String text =
        numels.stream().limit(MOST_PARTS).map(String::valueOf).collect(Collectors.joining("+"));
    return numels.size() <= MOST_PARTS
        ? text
        : text + "+...#" + Integer.toHexString(numels.hashCode());
  }

  private static long numel(List<Long> shape) {
    return shape.stream().reduce(1L, (a, b) -> a * b);
  }

  /**
   * Describes the sender or receiver and the tag of a message, to be appended to the operation's
   * name and number.
   */
  public static String ofMessage(int peer, OpType type, int tag) {
    String whom = peer < 0 ? "" : (type == OpType.SEND ? " to rank " : " from rank ") + peer;
    return whom + (peer < 0 ? " with tag " : ", tag ") + tag;
  }

  /** Creates the progress of a rank that waits for the others of a group that is being set up. */
  public static RankProgress ofSetUp(String group) {
    return new RankProgress(
        false,
        0,
        "",
        "the set-up of group " + group,
        "",
        Map.of(),
        Map.of(),
        List.of(),
        List.of(),
        List.of());
  }

  /** Creates a progress that contains only the calls of a rank, and those that have not ended. */
  public static RankProgress ofCalls(List<Issued> calls, List<Pending> pending) {
    long last = calls.stream().mapToLong(Issued::sequence).max().orElse(0);
    return new RankProgress(
        false,
        last,
        "",
        "",
        "",
        Map.of(),
        Map.of(),
        List.copyOf(pending),
        List.copyOf(calls),
        List.of());
  }

  /** Creates the progress of a rank that closed the group, and has written no more. */
  public static RankProgress ofClosed() {
    return new RankProgress(
        true, 0, "", "", "", Map.of(), Map.of(), List.of(), List.of(), List.of());
  }

  /** Returns whether a message waits for its counterpart. */
  public boolean waitsIn(OpType type, int peer, int tag) {
    return pending.stream()
        .anyMatch(op -> op.type == type && op.tag == tag && (op.peer == peer || op.peer < 0));
  }

  /**
   * Returns the operation in which the rank waits: a message with a rank that has not been asked
   * yet, or else a collective, or else any message.
   */
  public Pending nextWait(Set<Integer> asked) {
    return pending.stream()
        .min(
            Comparator.comparingInt((Pending op) -> order(op, asked))
                .thenComparingLong(Pending::sequence))
        .orElseThrow();
  }

  /** Returns the number of the first collective that has not ended; the greatest if none waits. */
  public long oldestCollective() {
    return pending.stream()
        .filter(op -> !op.type.isPointToPoint())
        .mapToLong(Pending::sequence)
        .min()
        .orElse(Long.MAX_VALUE);
  }

  private static int order(Pending op, Set<Integer> asked) {
    if (!op.type.isPointToPoint()) {
      return 1;
    }
    return op.peer < 0 || asked.contains(op.peer) ? 2 : 0;
  }

  /** Returns the same progress with the ranks to which the rank cannot connect. */
  public RankProgress without(List<Integer> newUnreached) {
    return new RankProgress(
        closed, issued, refusal, joining, elsewhere, sent, received, pending, recent, newUnreached);
  }

  /** Returns the same progress with what the rank does outside of the group. */
  public RankProgress with(String newElsewhere) {
    return new RankProgress(
        closed, issued, refusal, joining, newElsewhere, sent, received, pending, recent, unreached);
  }

  /**
   * Describes what the rank does instead of what others wait for, to be appended to where it
   * stands; empty if that is not known.
   */
  public String instead() {
    String inGroup = pending.isEmpty() ? "" : "it waits in " + nextWait(Set.of()).describe();
    String both = inGroup + (inGroup.isEmpty() || elsewhere.isEmpty() ? "" : ", ") + elsewhere;
    return both.isEmpty() ? "" : "; " + both;
  }

  /**
   * Returns why the rank is stuck, as a suffix to its position; empty if its last call was
   * accepted.
   */
  public String afterRefusal() {
    return refusal.isEmpty() ? "" : "; its last call was refused: " + refusal;
  }

  /** Encodes this progress as lines of text. */
  public String encode() {
    StringBuilder text = new StringBuilder(closed ? "closed " : "open ").append(issued);
    if (!refusal.isEmpty()) {
      String line = refusal.replace('\n', ' ');
      text.append('\n').append(REFUSED).append(line, 0, Math.min(line.length(), MOST_CHARS));
    }
    if (!joining.isEmpty()) {
      text.append('\n').append(JOINING).append(joining);
    }
    if (!elsewhere.isEmpty()) {
      text.append('\n').append(ELSEWHERE).append(elsewhere.replace('\n', ' '));
    }
    encode("\nsent ", sent, text);
    encode("\ngot ", received, text);
    for (Pending op : pending) {
      text.append("\nin ").append(op.type.name()).append(' ').append(op.sequence);
      text.append(' ').append(op.peer).append(' ').append(op.tag);
    }
    for (Issued op : recent) {
      text.append("\ndid ").append(op.type.name()).append(' ').append(op.sequence);
      text.append(' ').append(op.numel).append(' ').append(op.root);
      text.append(' ').append(op.dtype).append(' ').append(op.reduceOp);
      text.append(' ').append(op.parts);
    }
    for (int rank : unreached) {
      text.append("\ncut ").append(rank);
    }
    return text.toString();
  }

  private static void encode(String word, Map<Integer, Long> counts, StringBuilder text) {
    for (Map.Entry<Integer, Long> each : counts.entrySet()) {
      text.append(word).append(each.getKey()).append(' ').append(each.getValue());
    }
  }

  public static RankProgress decode(String text) {
    String[] lines = text.split("\n", -1);
    String[] first = lines[0].split(" ", -1);
    Map<Integer, Long> sent = new TreeMap<>();
    Map<Integer, Long> received = new TreeMap<>();
    List<Pending> pending = new ArrayList<>();
    List<Issued> recent = new ArrayList<>();
    List<Integer> unreached = new ArrayList<>();
    String refusal = "";
    String joining = "";
    String elsewhere = "";
    for (int i = 1; i < lines.length; i++) {
      String[] words = lines[i].split(" ", -1);
      switch (words[0]) {
        case "sent" -> sent.put(Integer.valueOf(words[1]), Long.valueOf(words[2]));
        case "refused" -> refusal = Printable.line(lines[i].substring(REFUSED.length()));
        case "joining" -> joining = Printable.line(lines[i].substring(JOINING.length()));
        case "elsewhere" -> elsewhere = Printable.line(lines[i].substring(ELSEWHERE.length()));
        case "cut" -> unreached.add(Integer.valueOf(words[1]));
        case "got" -> received.put(Integer.valueOf(words[1]), Long.valueOf(words[2]));
        case "did" ->
            recent.add(
                new Issued(
                    OpType.valueOf(words[1]),
                    Long.parseLong(words[2]),
                    words[6],
                    words[5],
                    Long.parseLong(words[3]),
                    Integer.parseInt(words[4]),
                    words[7]));
        default ->
            pending.add(
                new Pending(
                    OpType.valueOf(words[1]),
                    Long.parseLong(words[2]),
                    Integer.parseInt(words[3]),
                    Integer.parseInt(words[4])));
      }
    }
    return new RankProgress(
        first[0].equals("closed"),
        Long.parseLong(first[1]),
        refusal,
        joining,
        elsewhere,
        sent,
        received,
        pending,
        recent,
        unreached);
  }
}
