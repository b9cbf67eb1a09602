package dev.tutti.cuda.driver;

import dev.tutti.BackendException;
import dev.tutti.cuda.CudaException;
import java.util.Optional;
import jcuda.LibUtils;
import jcuda.driver.JCudaDriver;

/** Static methods that open this machine's driver. */
public final class CudaDrivers {
  /** The oldest CUDA version that the driver must support; the kernels are compiled for it. */
  public static final int REQUIRED_VERSION = 13000;

  /** The oldest compute capability for which the kernels are compiled: 10 * major + minor. */
  public static final int REQUIRED_CAPABILITY = 80;

  private static final int NO_DEVICE = 100;

  private CudaDrivers() {}

  /**
   * Returns what the machine lacks, or empty if the driver is present. Opens the driver's library
   * but calls nothing in it.
   */
  public static Optional<String> missing() {
    if (LibUtils.calculateOS() != LibUtils.OSType.LINUX
        || LibUtils.calculateArch() != LibUtils.ArchType.X86_64) {
      return Optional.of("CUDA is supported on Linux on x86-64 only");
    }
    return NativeLibraries.isPresent(LibCuda.NAME)
        ? Optional.empty()
        : Optional.of(
            ("no NVIDIA driver: the loader cannot find %s; install a driver that supports CUDA %s"
                    + " or newer, or give the container access to the GPUs")
                .formatted(LibCuda.NAME, versionText(REQUIRED_VERSION)));
  }

  /**
   * Loads and initializes the driver.
   *
   * @throws BackendException if the driver cannot be used; the message says what is missing
   */
  public static CudaDriver open() {
    missing()
        .ifPresent(
            reason -> {
              throw new BackendException(reason);
            });
    try {
      JCudaLibrary.load();
      Errors.call("cuInit", () -> JCudaDriver.cuInit(0));
    } catch (CudaException e) {
      if (e.code() != NO_DEVICE) {
        throw e;
      }
      throw new CudaException(
          e.call(),
          e.code(),
          e.errorName(),
          "the driver finds no GPU that this process may use; CUDA_VISIBLE_DEVICES may be hiding"
              + " them");
    } catch (LinkageError e) {
      throw new BackendException("JCuda cannot be loaded", e);
    }
    JCudaDevices devices = new JCudaDevices();
    requireVersion(devices.driverVersion());
    return new CudaDriver(
        devices,
        new JCudaContexts(),
        new JCudaKernels(),
        new JCudaStreams(),
        new JCudaEvents(),
        new JCudaMemory(),
        new NativeVirtualMemory(),
        new NativeGraphs());
  }

  /**
   * Throws if a driver is too old.
   *
   * @param version the newest CUDA version that the driver supports
   */
  public static void requireVersion(int version) {
    if (version < REQUIRED_VERSION) {
      throw new BackendException(
          "the NVIDIA driver supports CUDA %s, but %s is required; install a newer driver"
              .formatted(versionText(version), versionText(REQUIRED_VERSION)));
    }
  }

  /**
   * Returns why a device cannot be used, or empty if it can.
   *
   * @param devices the driver's calls
   * @param device the device's ordinal
   */
  public static Optional<String> unusableDevice(DeviceCalls devices, int device) {
    int capability =
        10 * devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR)
            + devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MINOR);
    return capability >= REQUIRED_CAPABILITY
        ? Optional.empty()
        : Optional.of(
            "cuda:%d (%s) has compute capability %s, but %s or newer is required"
                .formatted(
                    device,
                    devices.name(device),
                    capability / 10 + "." + capability % 10,
                    REQUIRED_CAPABILITY / 10 + "." + REQUIRED_CAPABILITY % 10));
  }

  /** Formats a version number of the driver, such as 13000, in the usual dotted form. */
  public static String versionText(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }
}
