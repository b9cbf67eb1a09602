package dev.tutti.fake.simulation;

import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/** Opens the TCP channels and selectors of one host. */
final class SimulatedChannels extends SelectorProvider {
  private final SocketHost host;

  SimulatedChannels(SocketHost host) {
    this.host = host;
  }

  @Override
  public SocketChannel openSocketChannel() {
    return new SimulatedSocket(this, host);
  }

  @Override
  public ServerSocketChannel openServerSocketChannel() {
    return new SimulatedListener(this, host);
  }

  @Override
  public AbstractSelector openSelector() {
    return new SimulatedSelector(this, host.network());
  }

  @Override
  public DatagramChannel openDatagramChannel() {
    throw new UnsupportedOperationException("only TCP is simulated");
  }

  @Override
  public DatagramChannel openDatagramChannel(ProtocolFamily family) {
    throw new UnsupportedOperationException("only TCP is simulated");
  }

  @Override
  public Pipe openPipe() {
    throw new UnsupportedOperationException("only TCP is simulated");
  }
}
