package dev.tutti.cuda.driver;

/** The driver calls that query the devices. Needs no context. */
public interface DeviceCalls {
  /** Returns the newest CUDA version that the driver supports: 1000 * major + 10 * minor. */
  int driverVersion();

  /** Returns the number of devices that this process may use. */
  int count();

  /** Returns a device's name. */
  String name(int device);

  /** Returns a device's PCI bus ID, such as {@code 0000:1B:00.0}. */
  String pciBusId(int device);

  /** Returns the value of an attribute; 1 or 0 for a boolean attribute. */
  int attribute(int device, DeviceAttribute attribute);

  /** Returns the size of a device's memory in bytes. */
  long totalBytes(int device);

  /** Returns whether a device can access another device's memory. */
  boolean canAccessPeer(int device, int peer);
}
