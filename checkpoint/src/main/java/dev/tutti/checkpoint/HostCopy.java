package dev.tutti.checkpoint;

import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.spi.DeviceTensors;

/** Copies between tensors on the host and tensors on any device. */
final class HostCopy {
  private HostCopy() {}

  /** Returns whether tensors of a device can be copied. */
  static boolean supports(Device device) {
    return device.isCpu() || DeviceTensors.find(device.type()).isPresent();
  }

  /** Returns the provider of tensors on a device that is {@linkplain #supports supported}. */
  static DeviceTensors of(Device device) {
    return DeviceTensors.find(device.type()).orElseThrow();
  }

  /** Copies a tensor into a contiguous host tensor, after the work in the current stream. */
  static void toHost(Tensor host, Tensor source) {
    if (source.device().isCpu()) {
      host.copyFrom(source);
    } else if (source.byteSize() > 0) {
      of(source.device()).copyToHost(host, source);
    }
  }

  /** Copies a contiguous host tensor into a contiguous tensor, in the current stream. */
  static void fromHost(Tensor target, Tensor host) {
    if (target.device().isCpu()) {
      target.copyFrom(host);
    } else {
      of(target.device()).copyFromHost(target, host);
    }
  }
}
