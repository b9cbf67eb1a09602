package dev.tutti.runtime.membership;

/** Counts the processes that wait to join a job, from the entries of its log. */
public final class Newcomers {
  private final Membership log = new Membership();
  private volatile Count count = new Count(0, 0);

  /** How many wait in a generation. */
  private record Count(long generation, int number) {}

  /** Creates a count that has read nothing. */
  public Newcomers() {}

  /** Begins with what entries said that are deleted; before any is read. */
  public void begin(Membership members) {
    log.become(members);
    count = new Count(log.generation(), log.newcomers());
  }

  /**
   * Reads the next entry of the log; one thread reads all, in their order.
   *
   * @param place its place, starting at 1
   * @param value the entry, of any kind
   */
  public void read(long place, byte[] value) {
    boolean _ = log.take(ChangeInput.Read.of(place, value, -1));
    count = new Count(log.generation(), log.newcomers());
  }

  /**
   * Returns how many processes wait that came after the change that led to a generation began, as
   * far as the log was read; any thread may call it.
   *
   * @param generation the generation; 0 if the log was not read up to it
   */
  public int count(long generation) {
    Count now = count;
    return now.generation == generation ? now.number : 0;
  }
}
