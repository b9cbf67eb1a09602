package dev.tutti.cuda.driver;

final class FakeDevices implements DeviceCalls {
  private final FakeCudaDriver fake;

  FakeDevices(FakeCudaDriver fake) {
    this.fake = fake;
  }

  private void require(String call, int device) {
    if (device < 0 || device >= fake.devices()) {
      throw FakeCudaDriver.error(call, 101);
    }
  }

  @Override
  public int driverVersion() {
    fake.enter("cuDriverGetVersion", "");
    return fake.version();
  }

  @Override
  public int count() {
    fake.enter("cuDeviceGetCount", "");
    return fake.devices();
  }

  @Override
  public String name(int device) {
    require("cuDeviceGetName", device);
    return "Fake H200";
  }

  @Override
  public String pciBusId(int device) {
    require("cuDeviceGetPCIBusId", device);
    return String.format("0000:%02X:00.0", 0x1B + device);
  }

  @Override
  public int attribute(int device, DeviceAttribute attribute) {
    require("cuDeviceGetAttribute", device);
    Integer set = fake.attribute(attribute);
    if (set != null) {
      return set;
    }
    return switch (attribute) {
      case COMPUTE_CAPABILITY_MAJOR -> 9;
      case COMPUTE_CAPABILITY_MINOR -> 0;
      case MULTIPROCESSORS -> 132;
      default -> 1;
    };
  }

  @Override
  public long totalBytes(int device) {
    return fake.memory().capacity();
  }

  @Override
  public boolean canAccessPeer(int device, int peer) {
    return device != peer && fake.hasLink(device, peer);
  }
}
