package dev.tutti.fake.simulation;

import dev.tutti.spi.Time;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.spi.SelectorProvider;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A host of a simulation, with one process. Its TCP channels behave as those of Linux do: reads and
 * writes are partial, buffers of random size fill up, and connections can be reset, half-open or
 * cut; all that a seed decides. Used by threads of the simulation.
 */
public final class SimulatedHost {
  /** How often a system requests a connection, with pauses of 1, 2, 4 seconds and so on. */
  private static final int ATTEMPTS = 7;

  private static final long SECOND_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final SimulatedScheduler scheduler;
  private final SimulatedNetwork<SimulatedHost> network;
  private final NetworkTime wires;
  private final InetAddress address;
  private final SimulatedPorts ports;
  private final SocketHost sockets = new Sockets();
  private final SelectorProvider channels = new SimulatedChannels(sockets);
  private final Set<SimulatedChannel> open = new LinkedHashSet<>();
  private SimulatedProcess process;
  private long connectNanos;
  private int exhausted;

  private SimulatedHost(
      SimulatedScheduler scheduler,
      SimulatedNetwork<SimulatedHost> network,
      SimulatedProcess process) {
    this.scheduler = scheduler;
    this.network = network;
    this.wires = network.time();
    this.address = network.nextAddress();
    this.process = process;
    this.ports = new SimulatedPorts(wires, address);
    network.add(address, this);
    network.runs(process, this);
  }

  /**
   * Returns the host of the calling thread.
   *
   * @throws IllegalStateException if the thread belongs to no simulation
   */
  public static SimulatedHost current() {
    return of(SimulatedProcess.current());
  }

  /** Returns the host on which a process runs. */
  static SimulatedHost of(SimulatedProcess process) {
    SimulatedScheduler scheduler = process.scheduler();
    SimulatedNetwork<SimulatedHost> network =
        scheduler.network(random -> new SimulatedNetwork<>(new NetworkTime(scheduler, random)));
    SimulatedHost known = network.hostOf(process);
    return known == null ? new SimulatedHost(scheduler, network, process) : known;
  }

  /**
   * Creates another host of the same network.
   *
   * @param name the name of its process
   */
  public SimulatedHost newHost(String name) {
    return new SimulatedHost(scheduler, network, new SimulatedProcess(scheduler, name));
  }

  /** Returns the address of the host. */
  public InetAddress address() {
    return address;
  }

  /** Returns the time of the process. */
  public Time time() {
    return process.time();
  }

  /** Returns what opens channels of the host. */
  public SelectorProvider channels() {
    return channels;
  }

  /**
   * Returns how many channels of the process are bound or connected, or were and are not closed.
   */
  public int openChannels() {
    return open.size();
  }

  /**
   * Stops all threads of the process for some time, while its connections stay open.
   *
   * @param length how long
   */
  public void pause(Duration length) {
    process.pause(wires.nowNanos() + length.toNanos());
  }

  /** Ends the process; the system closes its channels. */
  public void crash() {
    endProcess();
    closeAll();
  }

  /** Loses the host: its process ends, and its peers see nothing of it. */
  public void lose() {
    for (SimulatedHost other : network.hosts()) {
      if (other != this) {
        partition(other, true);
      }
    }
    endProcess();
  }

  private void endProcess() {
    wires.note(address + " ends");
    process.halt();
    process.crash();
  }

  /** Closes the channels of a process that has ended. */
  void closeAll() {
    for (SimulatedChannel channel : List.copyOf(open)) {
      try {
        channel.processEnded();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  /**
   * Starts another process after the last one has ended.
   *
   * @param name its name
   */
  public void restart(String name) {
    process = new SimulatedProcess(scheduler, name);
    network.runs(process, this);
  }

  /**
   * Partitions the network between this host and another one, or ends the partition: all that they
   * send to each other is lost.
   *
   * @param other the other host
   * @param isParted whether it is lost
   */
  public void partition(SimulatedHost other, boolean isParted) {
    loseTo(other, isParted);
    other.loseTo(this, isParted);
  }

  /**
   * Loses all that this host sends to another one, or no longer does.
   *
   * @param other the other host
   * @param isLost whether it is lost
   */
  public void loseTo(SimulatedHost other, boolean isLost) {
    wires.note(address + (isLost ? " loses all to " : " reaches ") + other.address);
    sockets.linkTo(other.sockets).cut(isLost);
  }

  /**
   * Limits how fast bytes go from this host to another one.
   *
   * @param other the other host
   * @param bytesPerSecond the limit
   */
  public void slow(SimulatedHost other, long bytesPerSecond) {
    sockets.linkTo(other.sockets).limit(bytesPerSecond);
  }

  /** Breaks all connections of the host, as a device on the way does that resets them. */
  public void resetConnections() {
    for (SimulatedChannel channel : List.copyOf(open)) {
      if (channel instanceof SimulatedSocket socket) {
        socket.reset();
        socket.resetPeer();
      }
    }
  }

  /**
   * Answers attempts to connect late.
   *
   * @param delay how late; those longer than two minutes find the host silent
   */
  public void delayConnects(Duration delay) {
    connectNanos = delay.toNanos();
  }

  /**
   * Lets the next reads and writes of the process find no memory, as where the JDK has none for the
   * buffers that it hands to the system.
   *
   * @param calls how many
   */
  public void exhaustMemory(int calls) {
    exhausted = calls;
  }

  /**
   * Sets which ports channels get that bind to port 0.
   *
   * @param first the first one
   * @param count their number
   */
  public void usePorts(int first, int count) {
    ports.range(first, count);
  }

  /** What the channels of the host see of it. */
  private final class Sockets implements SocketHost {
    @Override
    public NetworkTime network() {
      return wires;
    }

    @Override
    public SimulatedLink linkTo(SocketHost other) {
      return network.link(this, other);
    }

    @Override
    public SimulatedPorts ports() {
      return ports;
    }

    @Override
    public void takeMemory() {
      if (exhausted > 0) {
        exhausted--;
        throw new OutOfMemoryError("Cannot reserve direct buffer memory");
      }
    }

    @Override
    public void add(SimulatedChannel channel) {
      open.add(channel);
    }

    @Override
    public void remove(SimulatedChannel channel) {
      open.remove(channel);
    }

    @Override
    public InetAddress facing(InetAddress other) {
      return other.isLoopbackAddress() ? other : address;
    }

    @Override
    public void connect(ConnectionEnd client, InetSocketAddress target) {
      wires.note(client + " begins");
      ask(client, target, 1);
    }
  }

  private void ask(ConnectionEnd client, InetSocketAddress target, int attempt) {
    if (attempt > ATTEMPTS) {
      client.refused("Connection timed out");
      return;
    }
    SimulatedHost other = find(target.getAddress());
    long pause = SECOND_NANOS << (attempt - 1);
    boolean lost =
        other == null
            || sockets.linkTo(other.sockets).isCut()
            || other.sockets.linkTo(sockets).isCut();
    if (lost || other == null || other.connectNanos > pause) {
      wires.after(pause, () -> ask(client, target, attempt + 1));
      return;
    }
    wires.after(
        wires.delayNanos() + other.connectNanos,
        () -> {
          if (!other.answer(client, target)) {
            wires.after(pause, () -> ask(client, target, attempt + 1));
          }
        });
  }

  private @Nullable SimulatedHost find(InetAddress wanted) {
    boolean own = wanted.isLoopbackAddress() || wanted.isAnyLocalAddress();
    return own ? this : network.find(wanted);
  }

  /** Answers an attempt to connect; returns false if it is ignored because too many wait. */
  private boolean answer(ConnectionEnd client, InetSocketAddress target) {
    SimulatedListener listener = listener(target);
    if (listener != null) {
      return listener.offer(client, target);
    }
    if (target.equals(client.localAddress())) {
      client.loop();
    } else {
      wires.after(wires.delayNanos(), () -> client.refused("Connection refused"));
    }
    return true;
  }

  private @Nullable SimulatedListener listener(InetSocketAddress target) {
    for (SimulatedChannel channel : open) {
      if (channel instanceof SimulatedListener listener && listener.covers(target)) {
        return listener;
      }
    }
    return null;
  }
}
