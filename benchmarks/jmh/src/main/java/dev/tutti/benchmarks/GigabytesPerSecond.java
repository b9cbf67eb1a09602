package dev.tutti.benchmarks;

import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** The bytes that an invocation wrote; JMH divides them by the time. */
@State(Scope.Thread)
@AuxCounters(AuxCounters.Type.OPERATIONS)
public class GigabytesPerSecond {
  /** The number of units of 10^9 bytes. */
  public double gigabytes;
}
