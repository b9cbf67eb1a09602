package dev.tutti.gloo.backend;

import dev.tutti.OpType;
import dev.tutti.gloo.algorithm.MonitoredBarrier;
import dev.tutti.gloo.algorithm.SocketAlgorithms;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.UserMessages;
import dev.tutti.spi.Operation;

/**
 * What all backends share for communication over sockets: messages, the numbering of collectives,
 * and one barrier.
 */
public final class Wire {
  static final String DIRECT_PATH = SocketAlgorithms.DIRECT_PATH;

  private final Transport transport;
  private final UserMessages messages;
  private final MonitoredBarrier monitoredBarrier;

  // Numbers the collectives; must grow by the same amounts as PyTorch's counter.
  private int nextTag;

  /**
   * Creates an instance for any number of operations.
   *
   * @param transport connects the ranks
   */
  public Wire(Transport transport) {
    this.transport = transport;
    this.messages = new UserMessages(transport);
    this.monitoredBarrier = new MonitoredBarrier(transport);
  }

  /** Returns the transport, which connects the ranks. */
  public Transport transport() {
    return transport;
  }

  /** Returns the object that moves users' messages. */
  UserMessages messages() {
    return messages;
  }

  /**
   * Begins a collective.
   *
   * @param signature the values the ranks must agree on
   * @return the number of the collective
   * @throws IllegalStateException if a peer is known to have called a different operation
   */
  public int next(long signature) {
    int tag = nextTag++;
    transport.sign(signature, tag);
    return tag;
  }

  void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    int tag = next(Signature.of(OpType.MONITORED_BARRIER));
    nextTag++;
    op.took(DIRECT_PATH);
    monitoredBarrier.run(op, tag, waitAllRanks);
  }
}
