package dev.tutti.fake.simulation;

import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;

/** One end of a connection, as the network sees it. */
interface ConnectionEnd {
  /** Returns whether the program still has it. */
  boolean isOpen();

  /** Returns its address, also after its close; null before it has one. */
  @Nullable InetSocketAddress localAddress();

  /** Connects it to itself. */
  void loop();

  /** Notes that the other end has accepted the connection. */
  void established();

  /** Notes that no connection can be made. */
  void refused(String why);

  /** Wakes those that wait for what may be possible now. */
  void changed();

  /** Answers bytes for a closed end with a reset. */
  void refuse();

  /** Breaks the connection at this end. */
  void breaks(String why);
}
