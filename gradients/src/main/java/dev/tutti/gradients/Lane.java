package dev.tutti.gradients;

import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceStream;
import dev.tutti.spi.DeviceTensors;

/**
 * The stream of a reducer on one device, in which collectives run beside the backward pass. Any
 * thread may call any method.
 */
final class Lane {
  private final Device device;
  private final DeviceTensors provider;
  private final DeviceStream stream;

  Lane(Device device, DeviceTensors provider, DeviceStream stream) {
    this.device = device;
    this.provider = provider;
    this.stream = stream;
  }

  Device device() {
    return device;
  }

  /** Returns the calling thread's current stream on the device. */
  DeviceStream current() {
    return provider.currentStream(device);
  }

  /** Makes the reducer's stream current on the calling thread, and returns the one before. */
  DeviceStream makeCurrent() {
    return stream.makeCurrent();
  }

  /** Orders later work of the reducer after the work that is now in another stream. */
  void after(DeviceStream earlier) {
    stream.waitFor(earlier);
  }

  /**
   * Orders later work in the calling thread's current stream after that of the reducer. A stream
   * that is being captured came after it before the capture; no order may lead into one.
   */
  void beforeCurrent() {
    DeviceStream current = current();
    if (!current.isCapturing() || stream.isCapturing()) {
      current.waitFor(stream);
    }
  }

  /** Keeps a tensor's memory, once it is freed, until the reducer's work on it is done. */
  void keep(Tensor tensor) {
    stream.keep(tensor);
  }

  /** Gives the stream back. */
  void close() {
    provider.giveStream(stream);
  }
}
