package dev.tutti.fake.simulation;

import java.net.InetAddress;
import java.net.InetSocketAddress;

/** A host, as its channels see it. */
interface SocketHost {
  NetworkTime network();

  SimulatedPorts ports();

  /** Returns the way to another host. */
  SimulatedLink linkTo(SocketHost other);

  /** Returns the address of this host that another address sees. */
  InetAddress facing(InetAddress other);

  /** Requests a connection. */
  void connect(ConnectionEnd client, InetSocketAddress target);

  /**
   * Takes memory for a read or a write.
   *
   * @throws OutOfMemoryError if there is none
   */
  void takeMemory();

  void add(SimulatedChannel channel);

  void remove(SimulatedChannel channel);
}
