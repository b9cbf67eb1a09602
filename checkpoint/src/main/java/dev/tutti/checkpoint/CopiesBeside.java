package dev.tutti.checkpoint;

import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceStream;
import dev.tutti.spi.DeviceTensors;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Copies from devices to the host in streams of their own, so that later work of the program need
 * not wait for them. One thread adds copies; then one thread runs or discards them.
 */
final class CopiesBeside {
  private final List<Copy> copies = new ArrayList<>();
  private final Map<Device, DeviceStream> streams = new HashMap<>();

  /** A copy of a tensor on a device to one on the host. */
  private record Copy(Tensor host, Tensor source) {}

  /**
   * Copies a tensor at once if it is on the host or its device has no stream for it. Otherwise adds
   * a copy, which follows the work that is now in the calling thread's current stream.
   */
  void copy(Tensor host, Tensor source) {
    if (source.device().isCpu() || source.byteSize() == 0 || !add(host, source)) {
      HostCopy.toHost(host, source);
    }
  }

  private boolean add(Tensor host, Tensor source) {
    Device device = source.device();
    DeviceStream stream = streams.get(device);
    if (stream == null) {
      DeviceTensors provider = HostCopy.of(device);
      Optional<DeviceStream> taken = provider.takeStream(device);
      if (taken.isEmpty()) {
        return false;
      }
      stream = taken.get();
      streams.put(device, stream);
      DeviceStream current = provider.currentStream(device);
      if (current.isCapturing()) {
        throw new IllegalStateException(
            current + " is being captured into a graph; save before or after the capture");
      }
      stream.waitFor(current);
    }
    stream.keep(source);
    copies.add(new Copy(host, source));
    return true;
  }

  /** Makes all copies, and waits for them. */
  void run() {
    try {
      for (Copy copy : copies) {
        DeviceStream stream = Objects.requireNonNull(streams.get(copy.source.device()));
        DeviceStream before = stream.makeCurrent();
        try {
          HostCopy.toHost(copy.host, copy.source);
        } finally {
          DeviceStream _ = before.makeCurrent();
        }
      }
    } finally {
      discard();
    }
  }

  /** Gives back the streams; those that are left have no work. */
  void discard() {
    copies.clear();
    streams.forEach((device, stream) -> HostCopy.of(device).giveStream(stream));
    streams.clear();
  }
}
