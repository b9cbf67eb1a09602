package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.cpu.wait.Futex;
import io.aeron.Aeron;
import io.aeron.Counter;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.status.CountersReader;

/** A word in shared memory through which a thread that goes to sleep requests a wake-up. */
public final class Doorbell {
  /*
   * A thread that goes to sleep arms the bell, checks once more for messages, and then sleeps in a
   * futex on the word itself. A thread that has written a message rings the bell: it disarms it and,
   * if it was armed, wakes the sleeper. Either the sleeper finds the message in its last check, or the writer
   * finds the bell armed. A process that cannot call the futex, or not yet, wakes nobody, and its
   * own word says so: who waits for it looks from time to time instead. The word is a counter of
   * the driver, which is freed when the process that created it has ended.
   */
  private static final int TYPE = 2970;
  private static final String LABEL = "sleeps";
  private static final long CANNOT_WAKE = 0;
  private static final long AWAKE = 1;
  private static final long SLEEPS = 2;

  private final BooleanSupplier isUnmapped;
  private final AtomicBuffer words;
  private final int number;
  private final int offset;
  private final long address;

  private Doorbell(Aeron aeron, int number) {
    this(aeron.countersReader().valuesBuffer(), number, aeron::isClosed);
  }

  /**
   * Creates a bell from a word in any memory.
   *
   * @param words the words, zero at the counter's position
   * @param number the number of the counter
   * @param isUnmapped returns whether the words are no longer mapped
   */
  Doorbell(AtomicBuffer words, int number, BooleanSupplier isUnmapped) {
    this.isUnmapped = isUnmapped;
    this.words = words;
    this.number = number;
    this.offset = CountersReader.counterOffset(number);
    this.address = words.addressOffset() + offset;
  }

  /** Creates a bell for a thread of this process. */
  public static Doorbell make(Aeron aeron) {
    return of(aeron, aeron.addCounter(TYPE, LABEL));
  }

  /**
   * Requests the word of a bell from the driver; returns the registration number by which its
   * counter is found.
   */
  public static long beginToMake(Aeron aeron) {
    return aeron.asyncAddCounter(TYPE, LABEL);
  }

  /** Creates a bell from its counter. */
  public static Doorbell of(Aeron aeron, Counter counter) {
    return new Doorbell(aeron, counter.id());
  }

  /**
   * Finds the bell of another process.
   *
   * @throws MalformedMessageException if there is no bell with that number
   */
  public static Doorbell find(Aeron aeron, int number) {
    CountersReader counters = aeron.countersReader();
    if (number < 0
        || number > counters.maxCounterId()
        || counters.getCounterTypeId(number) != TYPE) {
      throw new MalformedMessageException("unknown bell " + number);
    }
    return new Doorbell(aeron, number);
  }

  /** Returns the number by which another process finds this bell. */
  public int number() {
    return number;
  }

  /** Returns whether the owner of this bell can wake a thread that sleeps in another bell. */
  public boolean canWake() {
    return !isUnmapped.getAsBoolean() && words.getLongVolatile(offset) != CANNOT_WAKE;
  }

  /** Requests a wake-up in {@link #sleep} when there is a message from now on. */
  public void arm() {
    set(SLEEPS);
  }

  /** Marks that nobody sleeps, and that this process can wake others. */
  public void disarm() {
    set(AWAKE);
  }

  private void set(long value) {
    if (!isUnmapped.getAsBoolean()) {
      words.putLongVolatile(offset, value);
    }
  }

  public boolean isArmed() {
    return words.getLongVolatile(offset) == SLEEPS;
  }

  /**
   * Sleeps until the bell, which must have been armed, is rung; may return spuriously.
   *
   * @param futex the futex of this thread
   * @param nanos the maximum time to sleep
   */
  public void sleep(Futex futex, long nanos) {
    futex.await(address, SLEEPS, nanos);
  }

  /** Wakes the thread that sleeps in the bell, after a message was written; any thread may call. */
  public void ring() {
    if (Futex.isLinked() && tookArmed()) {
      Futex.wake(address);
    }
  }

  /** Disarms the bell; returns whether it was armed, for only one of several callers. */
  boolean tookArmed() {
    VarHandle.fullFence();
    return !isUnmapped.getAsBoolean()
        && words.getLongVolatile(offset) == SLEEPS
        && words.compareAndSetLong(offset, SLEEPS, AWAKE);
  }
}
