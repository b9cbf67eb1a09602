package dev.tutti.aeron;

import io.aeron.Aeron;
import io.aeron.Counter;
import java.lang.invoke.VarHandle;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.status.CountersReader;

/** Is a word in shared memory in which a thread that goes to sleep asks to be woken. */
final class Bell {
  /*
   * Who goes to sleep arms the bell, looks once more for messages, then sleeps in a read of the control
   * connection. Who has written a message takes the bell, and if it was armed, sends a byte there. Either
   * the sleeper finds the message at its last look, or the writer finds the bell armed. The word is a
   * counter of the driver, which is free again when the process that made it has ended.
   */
  private static final int TYPE = 2970;
  private static final String LABEL = "sleeps";
  private static final long ARMED = 1;

  private final Aeron aeron;
  private final AtomicBuffer words;
  private final int number;
  private final int offset;

  private Bell(Aeron aeron, int number) {
    this.aeron = aeron;
    this.words = aeron.countersReader().valuesBuffer();
    this.number = number;
    this.offset = CountersReader.counterOffset(number);
  }

  /** Makes a bell for a thread of this process. */
  static Bell make(Aeron aeron) {
    return of(aeron, aeron.addCounter(TYPE, LABEL));
  }

  /** Asks the driver for the word of a bell; returns by which number its counter is found. */
  static long beginToMake(Aeron aeron) {
    return aeron.asyncAddCounter(TYPE, LABEL);
  }

  /** Makes a bell of its word. */
  static Bell of(Aeron aeron, Counter counter) {
    return new Bell(aeron, counter.id());
  }

  /**
   * Finds the bell of another process.
   *
   * @throws ProtocolException if there is none of that number
   */
  static Bell find(Aeron aeron, int number) {
    CountersReader counters = aeron.countersReader();
    if (number < 0
        || number > counters.maxCounterId()
        || counters.getCounterTypeId(number) != TYPE) {
      throw new ProtocolException("there is no bell " + number);
    }
    return new Bell(aeron, number);
  }

  /** Returns by which number another process finds it. */
  int number() {
    return number;
  }

  /** Asks to be woken when there is a message from now on. */
  void arm() {
    set(ARMED);
  }

  /** Says that nobody sleeps. */
  void disarm() {
    set(0);
  }

  private void set(long value) {
    if (!aeron.isClosed()) {
      words.putLongVolatile(offset, value);
    }
  }

  boolean isArmed() {
    return words.getLongVolatile(offset) == ARMED;
  }

  /** Returns, after a message was written, whether to wake the sleeper; true for one only. */
  boolean take() {
    VarHandle.fullFence();
    return !aeron.isClosed()
        && words.getLongVolatile(offset) == ARMED
        && words.compareAndSetLong(offset, ARMED, 0);
  }
}
