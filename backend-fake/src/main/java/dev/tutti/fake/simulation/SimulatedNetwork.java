package dev.tutti.fake.simulation;

import java.net.InetAddress;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The hosts of a simulation, and the links between them. */
final class SimulatedNetwork<H> {
  private final NetworkTime time;
  private final Map<InetAddress, H> hosts = new LinkedHashMap<>();
  private final Map<SimulatedProcess, H> byProcess = new LinkedHashMap<>();
  private final Map<Direction, SimulatedLink> links = new LinkedHashMap<>();

  private record Direction(Object from, Object to) {}

  SimulatedNetwork(NetworkTime time) {
    this.time = time;
  }

  NetworkTime time() {
    return time;
  }

  /** Returns the host on which a process runs; null if it has none yet. */
  @Nullable H hostOf(SimulatedProcess process) {
    return byProcess.get(process);
  }

  InetAddress nextAddress() {
    return InetAddress.ofLiteral("10.0.0." + (hosts.size() + 1));
  }

  void add(InetAddress address, H host) {
    hosts.put(address, host);
  }

  /** Notes that a process runs on a host. */
  void runs(SimulatedProcess process, H host) {
    byProcess.put(process, host);
  }

  /** Returns the host that has an address; null if none has. */
  @Nullable H find(InetAddress address) {
    return hosts.get(address);
  }

  List<H> hosts() {
    return List.copyOf(hosts.values());
  }

  SimulatedLink link(Object from, Object to) {
    return Objects.requireNonNull(
        links.computeIfAbsent(new Direction(from, to), _ -> new SimulatedLink(time)));
  }
}
