package dev.tutti.gradients;

import dev.tutti.Codec;
import dev.tutti.Device;
import dev.tutti.ProcessGroup;
import dev.tutti.spi.DeviceTensors;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The streams of a reducer, one on each device that has parameters, or none. */
final class Lanes implements AutoCloseable {
  /*
   * The reducer's stream waits for the streams in which gradients were marked, and await() lets the
   * caller's stream wait for the reducer's. Both are orders on the device. Host threads wait for
   * neither.
   */

  /** Names this process; processes of several containers may have one number, but other memory. */
  private static final String PROCESS =
      ProcessHandle.current().pid() + "/" + Arena.global().allocate(1).address();

  private static final String SEPARATOR = "\n";

  private final Lane[] lanes;
  private final boolean overlap;

  private Lanes(List<Lane> lanes, boolean overlap) {
    this.lanes = lanes.toArray(Lane[]::new);
    this.overlap = overlap;
  }

  /**
   * Takes streams for the devices of parameters, if the options allow it. All ranks must call it.
   */
  static Lanes of(ProcessGroup group, ParameterList parameters, ReducerOptions options) {
    List<Device> devices =
        parameters.all().stream()
            .map(each -> each.device())
            .filter(d -> !d.isCpu())
            .distinct()
            .toList();
    if (devices.isEmpty() || shareDevices(group, devices) || !options.overlap()) {
      return new Lanes(List.of(), false);
    }
    List<Lane> taken = new ArrayList<>();
    try {
      for (Device device : devices) {
        options
            .allocator()
            .streams(device)
            .flatMap(each -> lane(device, each))
            .ifPresent(taken::add);
      }
      return new Lanes(taken, true);
    } catch (RuntimeException | Error e) {
      taken.forEach(Lane::close);
      throw e;
    }
  }

  private static Optional<Lane> lane(Device device, DeviceTensors provider) {
    return provider.takeStream(device).map(stream -> new Lane(device, provider, stream));
  }

  /**
   * Returns whether two ranks of one process use one device. There, streams of both may share a
   * hardware queue, in which a stream that waits stops the other rank's streams behind it.
   */
  private static boolean shareDevices(ProcessGroup group, List<Device> devices) {
    String own =
        String.join(SEPARATOR, devices.stream().map(each -> PROCESS + " " + each).toList());
    HashSet<String> seen = new HashSet<>();
    boolean shared = false;
    for (String places : group.allGatherObject(own, Codec.STRING)) {
      for (String place : places.split(SEPARATOR, -1)) {
        shared |= !seen.add(place);
      }
    }
    return shared;
  }

  /**
   * Returns whether buckets on devices are to be reduced beside the backward pass, the same on all
   * ranks; a rank whose device has no stream left reduces them in the caller's.
   */
  boolean areBesideBackward() {
    return overlap;
  }

  /** Returns the lane of a device, or null if its buckets are reduced in the caller's stream. */
  @Nullable Lane find(Device device) {
    for (Lane lane : lanes) {
      if (lane.device().equals(device)) {
        return lane;
      }
    }
    return null;
  }

  /** Returns whether the calling thread's current stream of a device is being captured. */
  boolean isCapturing() {
    for (Lane lane : lanes) {
      if (lane.current().isCapturing()) {
        return true;
      }
    }
    return false;
  }

  /** Orders later work of the reducer after that in the calling thread's current streams. */
  void afterCurrent() {
    for (Lane lane : lanes) {
      lane.after(lane.current());
    }
  }

  /** Orders later work in the calling thread's current streams after that of the reducer. */
  void beforeCurrent() {
    for (Lane lane : lanes) {
      lane.beforeCurrent();
    }
  }

  @Override
  public void close() {
    for (Lane lane : lanes) {
      lane.close();
    }
  }
}
