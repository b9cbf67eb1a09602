package dev.tutti.gloo.backend;

import dev.tutti.OpType;
import dev.tutti.gloo.algorithm.MonitoredBarrier;
import dev.tutti.gloo.transport.Signature;
import dev.tutti.gloo.transport.Transport;
import dev.tutti.gloo.transport.UserMessages;
import dev.tutti.spi.Operation;

/** What each backend has of the sockets: messages, the numbers of collectives, and one barrier. */
public final class Wire {
  private final Transport transport;
  private final UserMessages messages;
  private final MonitoredBarrier monitoredBarrier;

  // Numbers the collectives; has to grow by what PyTorch's counter grows by.
  private int nextTag;

  /**
   * Prepares for any number of operations.
   *
   * @param transport connects the ranks
   */
  public Wire(Transport transport) {
    this.transport = transport;
    this.messages = new UserMessages(transport);
    this.monitoredBarrier = new MonitoredBarrier(transport);
  }

  /** Returns what connects the ranks. */
  public Transport transport() {
    return transport;
  }

  /** Returns what moves the messages of users. */
  UserMessages messages() {
    return messages;
  }

  /**
   * Begins a collective.
   *
   * @param signature what the ranks must agree on
   * @return its number
   * @throws IllegalStateException if a peer is known to have called something else
   */
  public int next(long signature) {
    int tag = nextTag++;
    transport.sign(signature, tag);
    return tag;
  }

  void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    int tag = next(Signature.of(OpType.MONITORED_BARRIER));
    nextTag++;
    op.took(SocketBackend.DIRECT_PATH);
    monitoredBarrier.run(op, tag, waitAllRanks);
  }
}
