package dev.tutti.cuda.driver;

/** Asks the driver what is there. Needs no context. */
public interface DeviceCalls {
  /** Returns the newest version of CUDA that the driver serves: 1000 x major + 10 x minor. */
  int driverVersion();

  /** Returns the number of devices that this process may use. */
  int count();

  /** Returns a device's name. */
  String name(int device);

  /** Returns a device's place on the PCI bus, such as {@code 0000:1B:00.0}. */
  String pciBusId(int device);

  /** Returns an attribute; of a yes-or-no attribute 1 or 0. */
  int attribute(int device, DeviceAttribute attribute);

  /** Returns the size of a device's memory in bytes. */
  long totalBytes(int device);

  /** Tells whether a device can reach the memory of another one. */
  boolean canAccessPeer(int device, int peer);

  /** Tells whether a device's atomic operations work on the memory of another one. */
  boolean hasPeerAtomics(int device, int peer);
}
