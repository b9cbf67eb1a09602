package dev.tutti.aeron.driver;

import dev.tutti.aeron.wire.MalformedMessageException;
import dev.tutti.cpu.wait.Futex;
import io.aeron.Aeron;
import io.aeron.Counter;
import java.lang.invoke.VarHandle;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.status.CountersReader;

/** A word in shared memory in which a thread that goes to sleep asks to be woken. */
public final class Doorbell {
  /*
   * A thread that goes to sleep arms the bell, looks once more for messages, then sleeps: in a read of the control
   * connection, or in a futex of the word itself where both sides may call native code. A thread that has written a
   * message takes the bell, and if it was armed, sends a byte there or wakes the futex. Either the sleeper
   * finds the message at its last look, or the writer finds the bell armed. A thread that finds that the other one
   * sleeps in the futex and has none itself sends the byte: somebody reads the control connection always,
   * and wakes the sleeper. The word is a counter of the driver, which is free again when the process that
   * made it has ended.
   */
  private static final int TYPE = 2970;
  private static final String LABEL = "sleeps";
  private static final long AWAKE = 0;
  private static final long HEARS = 1;
  private static final long SLEEPS_HERE = 2;

  private final BooleanSupplier isUnmapped;
  private final AtomicBuffer words;
  private final int number;
  private final int offset;
  private final long address;

  private Doorbell(Aeron aeron, int number) {
    this(aeron.countersReader().valuesBuffer(), number, aeron::isClosed);
  }

  /**
   * Makes a bell of a word anywhere.
   *
   * @param words zeros where the counter is
   * @param number of the counter
   * @param isUnmapped whether the words are there no more
   */
  Doorbell(AtomicBuffer words, int number, BooleanSupplier isUnmapped) {
    this.isUnmapped = isUnmapped;
    this.words = words;
    this.number = number;
    this.offset = CountersReader.counterOffset(number);
    this.address = words.addressOffset() + offset;
  }

  /** Makes a bell for a thread of this process. */
  public static Doorbell make(Aeron aeron) {
    return of(aeron, aeron.addCounter(TYPE, LABEL));
  }

  /** Asks the driver for the word of a bell; returns by which number its counter is found. */
  public static long beginToMake(Aeron aeron) {
    return aeron.asyncAddCounter(TYPE, LABEL);
  }

  /** Makes a bell of its word. */
  public static Doorbell of(Aeron aeron, Counter counter) {
    return new Doorbell(aeron, counter.id());
  }

  /**
   * Finds the bell of another process.
   *
   * @throws MalformedMessageException if there is none of that number
   */
  public static Doorbell find(Aeron aeron, int number) {
    CountersReader counters = aeron.countersReader();
    if (number < 0
        || number > counters.maxCounterId()
        || counters.getCounterTypeId(number) != TYPE) {
      throw new MalformedMessageException("there is no bell " + number);
    }
    return new Doorbell(aeron, number);
  }

  /** Returns by which number another process finds it. */
  public int number() {
    return number;
  }

  /** Asks to be woken by the control connection when there is a message from now on. */
  public void arm() {
    set(HEARS);
  }

  /** Asks to be woken in {@link #sleep} when there is a message from now on. */
  public void armForSleep() {
    set(SLEEPS_HERE);
  }

  /** Says that nobody sleeps. */
  public void disarm() {
    set(AWAKE);
  }

  private void set(long value) {
    if (!isUnmapped.getAsBoolean()) {
      words.putLongVolatile(offset, value);
    }
  }

  public boolean isArmed() {
    return words.getLongVolatile(offset) != AWAKE;
  }

  /**
   * Sleeps until somebody takes the bell, which was armed for it; may return without reason.
   *
   * @param futex of this thread
   * @param nanos how long at most
   */
  public void sleep(Futex futex, long nanos) {
    futex.await(address, SLEEPS_HERE, nanos);
  }

  /** Wakes who sleeps in {@link #sleep}, also where another process took the bell and could not. */
  public void wakeSleeper() {
    VarHandle.fullFence();
    if (!isUnmapped.getAsBoolean()) {
      boolean _ = words.compareAndSetLong(offset, SLEEPS_HERE, AWAKE);
      Futex.wake(address);
    }
  }

  /**
   * Takes the bell after a message was written, and wakes who sleeps in it, if this process can.
   *
   * @return whether to ring on the control connection; true for one only
   */
  public boolean take() {
    VarHandle.fullFence();
    if (isUnmapped.getAsBoolean()) {
      return false;
    }
    long seen = words.getLongVolatile(offset);
    if (seen == AWAKE || !words.compareAndSetLong(offset, seen, AWAKE)) {
      return false;
    }
    if (seen == SLEEPS_HERE && Futex.isLinked()) {
      Futex.wake(address);
      return false;
    }
    return true;
  }
}
