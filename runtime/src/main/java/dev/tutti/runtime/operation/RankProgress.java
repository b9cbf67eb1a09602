package dev.tutti.runtime.operation;

import dev.tutti.OpType;
import dev.tutti.ReduceOp;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Says where a rank stands in a group, as it tells the others after a time-out and at its close.
 *
 * @param closed whether it closed the group without a failure
 * @param issued number of its last collective, from 1
 * @param refusal why its last call was refused, or empty
 * @param joining in what it waits for others to make a group with it, or empty
 * @param elsewhere what it does outside of the group, or empty
 * @param sent number of messages that it began to send, by rank
 * @param received number of messages that it got, by rank
 * @param pending messages and collectives that have not ended
 * @param recent the last collectives, oldest first
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
    List<Issued> recent) {
  private static final String DEFAULT_OP = ReduceOp.Kind.SUM.name();
  private static final String REFUSED = "refused ";
  private static final String JOINING = "joining ";
  private static final String ELSEWHERE = "elsewhere ";
  private static final int MOST_CHARS = 1000;

  /**
   * An operation that has not ended.
   *
   * @param type what it is
   * @param sequence its number
   * @param peer the other rank of a message, or -1
   * @param tag of a message
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
   * @param type what it is
   * @param sequence its number
   * @param reduceOp name of what reduces them, or empty
   * @param dtype type of its elements, or empty
   * @param numel how many elements this rank brought; -1 if that does not matter
   * @param root the rank that sends to or receives from all; -1 if there is none
   */
  public record Issued(
      OpType type, long sequence, String reduceOp, String dtype, long numel, int root) {
    public String describe() {
      String what = type.label() + " #" + sequence + (dtype.isEmpty() ? "" : " " + dtype);
      return what
          + (dtype.isEmpty() || numel < 0 ? "" : "[" + numel + "]")
          + (reduceOp.isEmpty() || reduceOp.equals(DEFAULT_OP) ? "" : " by " + reduceOp)
          + (root < 0 ? "" : " with root " + root);
    }
  }

  /** Says between whom a message goes, to follow the name and number of the operation. */
  public static String ofMessage(int peer, OpType type, int tag) {
    String whom = peer < 0 ? "" : (type == OpType.SEND ? " to rank " : " from rank ") + peer;
    return whom + (peer < 0 ? " with tag " : ", tag ") + tag;
  }

  /** Says that a rank waits for the others of a group that is being set up. */
  public static RankProgress ofSetUp(String group) {
    return new RankProgress(
        false, 0, "", "the set-up of group " + group, "", Map.of(), Map.of(), List.of(), List.of());
  }

  /** Says what a rank called, and nothing else of it. */
  public static RankProgress ofCalls(List<Issued> calls) {
    long last = calls.isEmpty() ? 0 : calls.getLast().sequence();
    return new RankProgress(
        false, last, "", "", "", Map.of(), Map.of(), List.of(), List.copyOf(calls));
  }

  /** Tells whether a message waits for its other side. */
  public boolean waitsIn(OpType type, int peer, int tag) {
    return pending.stream()
        .anyMatch(op -> op.type == type && op.tag == tag && (op.peer == peer || op.peer < 0));
  }

  /**
   * Returns what it waits in: a message of a rank that was not asked yet, else a collective, else
   * any message.
   */
  public Pending nextWait(Set<Integer> asked) {
    return pending.stream()
        .min(
            Comparator.comparingInt((Pending op) -> order(op, asked))
                .thenComparingLong(Pending::sequence))
        .orElseThrow();
  }

  private static int order(Pending op, Set<Integer> asked) {
    if (!op.type.isPointToPoint()) {
      return 1;
    }
    return op.peer < 0 || asked.contains(op.peer) ? 2 : 0;
  }

  /** Says the same, with what it does outside of the group. */
  public RankProgress with(String newElsewhere) {
    return new RankProgress(
        closed, issued, refusal, joining, newElsewhere, sent, received, pending, recent);
  }

  /**
   * Says what it does instead of what others wait for, to follow where it stands; empty where that
   * is not known.
   */
  public String instead() {
    String inGroup = pending.isEmpty() ? "" : "it waits in " + nextWait(Set.of()).describe();
    String both = inGroup + (inGroup.isEmpty() || elsewhere.isEmpty() ? "" : ", ") + elsewhere;
    return both.isEmpty() ? "" : "; " + both;
  }

  /** Says why it came no further, to follow where it stands; empty if its last call was taken. */
  public String afterRefusal() {
    return refusal.isEmpty() ? "" : "; its last call was refused: " + refusal;
  }

  /** Writes it as lines. */
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
    String refusal = "";
    String joining = "";
    String elsewhere = "";
    for (int i = 1; i < lines.length; i++) {
      String[] words = lines[i].split(" ", -1);
      switch (words[0]) {
        case "sent" -> sent.put(Integer.valueOf(words[1]), Long.valueOf(words[2]));
        case "refused" -> refusal = lines[i].substring(REFUSED.length());
        case "joining" -> joining = lines[i].substring(JOINING.length());
        case "elsewhere" -> elsewhere = lines[i].substring(ELSEWHERE.length());
        case "got" -> received.put(Integer.valueOf(words[1]), Long.valueOf(words[2]));
        case "did" ->
            recent.add(
                new Issued(
                    OpType.valueOf(words[1]),
                    Long.parseLong(words[2]),
                    words[6],
                    words[5],
                    Long.parseLong(words[3]),
                    Integer.parseInt(words[4])));
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
        recent);
  }
}
