package dev.tutti.cuda.driver;

import static java.nio.charset.StandardCharsets.UTF_8;

import jcuda.driver.CUdevice;
import jcuda.driver.JCudaDriver;

/** Device queries through JCuda. */
final class JCudaDevices implements DeviceCalls {
  private static final int NAME_BYTES = 256;
  private static final int BUS_ID_BYTES = 32;

  @Override
  public int driverVersion() {
    int[] version = new int[1];
    Errors.call("cuDriverGetVersion", () -> JCudaDriver.cuDriverGetVersion(version));
    return version[0];
  }

  @Override
  public int count() {
    int[] count = new int[1];
    Errors.call("cuDeviceGetCount", () -> JCudaDriver.cuDeviceGetCount(count));
    return count[0];
  }

  @Override
  public String name(int device) {
    CUdevice handle = get(device);
    byte[] name = new byte[NAME_BYTES];
    Errors.call("cuDeviceGetName", () -> JCudaDriver.cuDeviceGetName(name, NAME_BYTES, handle));
    int length = 0;
    while (length < NAME_BYTES && name[length] != 0) {
      length++;
    }
    return new String(name, 0, length, UTF_8);
  }

  @Override
  public String pciBusId(int device) {
    CUdevice handle = get(device);
    String[] busId = new String[1];
    Errors.call(
        "cuDeviceGetPCIBusId", () -> JCudaDriver.cuDeviceGetPCIBusId(busId, BUS_ID_BYTES, handle));
    return busId[0];
  }

  @Override
  public int attribute(int device, DeviceAttribute attribute) {
    CUdevice handle = get(device);
    int[] value = new int[1];
    Errors.call(
        "cuDeviceGetAttribute of " + attribute,
        () -> JCudaDriver.cuDeviceGetAttribute(value, attribute.code(), handle));
    return value[0];
  }

  @Override
  public long totalBytes(int device) {
    CUdevice handle = get(device);
    long[] bytes = new long[1];
    Errors.call("cuDeviceTotalMem", () -> JCudaDriver.cuDeviceTotalMem(bytes, handle));
    return bytes[0];
  }

  @Override
  public boolean canAccessPeer(int device, int peer) {
    CUdevice from = get(device);
    CUdevice to = get(peer);
    int[] value = new int[1];
    Errors.call("cuDeviceCanAccessPeer", () -> JCudaDriver.cuDeviceCanAccessPeer(value, from, to));
    return value[0] != 0;
  }

  /** Returns JCuda's object for a device. */
  static CUdevice get(int device) {
    CUdevice handle = new CUdevice();
    Errors.call("cuDeviceGet of device " + device, () -> JCudaDriver.cuDeviceGet(handle, device));
    return handle;
  }
}
