package dev.tutti.benchmarks;

import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/** Counts what an invocation wrote; JMH divides it by the time. */
@State(Scope.Thread)
@AuxCounters(AuxCounters.Type.OPERATIONS)
public class GigabytesPerSecond {
  /** A unit of 10^9 bytes. */
  public double gigabytes;
}
