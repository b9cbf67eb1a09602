package dev.tutti;

import java.io.Serializable;
import java.time.Duration;
import java.util.Objects;
import java.util.OptionalInt;

/** The facts of a failed operation. */
public final class FailureInfo implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String group;
  private final int rank;
  private final int size;
  private final OpType opType;
  private final long sequenceNumber;
  private final int peer;
  private final int failedRank;
  private final Duration elapsed;

  private FailureInfo(Builder builder) {
    group = builder.group;
    rank = builder.rank;
    size = builder.size;
    opType = builder.opType;
    sequenceNumber = builder.sequenceNumber;
    peer = builder.peer;
    failedRank = builder.failedRank;
    elapsed = builder.elapsed;
  }

  /**
   * Returns a builder for a failure outside any operation, of which nothing else is known yet.
   *
   * @param group the name of the process group
   * @param rank the reporting rank in that group
   * @param size the number of ranks in that group
   */
  public static Builder builder(String group, int rank, int size) {
    return new Builder(group, rank, size);
  }

  /** Describes the facts in one line. */
  public String describe() {
    StringBuilder text = new StringBuilder(96);
    text.append("rank ").append(rank).append('/').append(size).append(", group ").append(group);
    if (opType != OpType.UNKNOWN) {
      text.append(", ").append(opType.label());
    }
    if (opType != OpType.UNKNOWN && sequenceNumber > 0) {
      text.append(" #").append(sequenceNumber);
    }
    if (peer >= 0) {
      text.append(", peer rank ").append(peer);
    }
    if (failedRank >= 0) {
      text.append(", first failing rank ").append(failedRank);
    }
    return text.append(", after ").append(elapsed.toMillis()).append(" ms").toString();
  }

  /** Returns the name of the process group. */
  public String group() {
    return group;
  }

  /** Returns the reporting rank in that group. */
  public int rank() {
    return rank;
  }

  /** Returns the number of ranks in that group. */
  public int size() {
    return size;
  }

  /** Returns the operation. */
  public OpType opType() {
    return opType;
  }

  /**
   * Returns the operation's number in the group's sequence, starting at 1; 0 outside any operation.
   */
  public long sequenceNumber() {
    return sequenceNumber;
  }

  /** Returns the peer of the operation, or empty if there is none. */
  public OptionalInt peer() {
    return rank(peer);
  }

  /** Returns the first rank known to have failed, or empty if none is known. */
  public OptionalInt failedRank() {
    return rank(failedRank);
  }

  /** Returns the time since the operation was issued. */
  public Duration elapsed() {
    return elapsed;
  }

  private static OptionalInt rank(int rank) {
    return rank < 0 ? OptionalInt.empty() : OptionalInt.of(rank);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FailureInfo o
        && group.equals(o.group)
        && rank == o.rank
        && size == o.size
        && opType.equals(o.opType)
        && sequenceNumber == o.sequenceNumber
        && peer == o.peer
        && failedRank == o.failedRank
        && elapsed.equals(o.elapsed);
  }

  @Override
  public int hashCode() {
    return Objects.hash(group, rank, size, opType, sequenceNumber, peer, failedRank, elapsed);
  }

  /** A builder of the facts, for backends. Not thread-safe. */
  public static final class Builder {
    private final String group;
    private final int rank;
    private final int size;
    private OpType opType = OpType.UNKNOWN;
    private long sequenceNumber;
    private int peer = -1;
    private int failedRank = -1;
    private Duration elapsed = Duration.ZERO;

    private Builder(String group, int rank, int size) {
      this.group = group;
      this.rank = rank;
      this.size = size;
    }

    /**
     * Sets the operation.
     *
     * @param type the type of the operation
     * @param sequence its number in the group's sequence, starting at 1; 0 outside any operation
     * @return this builder
     */
    public Builder operation(OpType type, long sequence) {
      this.opType = type;
      this.sequenceNumber = sequence;
      return this;
    }

    /**
     * Sets the peer.
     *
     * @param peer the peer of the operation, or -1
     * @return this builder
     */
    public Builder peer(int peer) {
      this.peer = peer;
      return this;
    }

    /**
     * Sets the rank that failed first.
     *
     * @param failedRank the first rank known to have failed, or -1
     * @return this builder
     */
    public Builder failedRank(int failedRank) {
      this.failedRank = failedRank;
      return this;
    }

    /**
     * Sets how long the operation had run.
     *
     * @param elapsed the time since the operation was issued
     * @return this builder
     */
    public Builder elapsed(Duration elapsed) {
      this.elapsed = elapsed;
      return this;
    }

    /** Returns the facts. */
    public FailureInfo build() {
      return new FailureInfo(this);
    }
  }
}
