package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.DeviceCalls;
import dev.tutti.cuda.driver.LinkCalls;
import dev.tutti.cuda.driver.LinkMatrix;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Formatting of lines that describe devices and their links. */
final class DeviceLine {
  private static final double GIB = 1L << 30;

  private DeviceLine() {}

  /** Describes a driver, its devices, and the links between them, one per line. */
  static List<String> findings(CudaDriver driver, LinkCalls links) {
    DeviceCalls devices = driver.devices();
    List<String> lines = new ArrayList<>();
    lines.add("the driver supports CUDA " + CudaDrivers.versionText(devices.driverVersion()));
    List<String> busIds = new ArrayList<>();
    for (int i = 0; i < devices.count(); i++) {
      busIds.add(devices.pciBusId(i));
      lines.add(of(devices, i));
      CudaDrivers.unusableDevice(devices, i).ifPresent(lines::add);
    }
    lines.addAll(links(LinkMatrix.of(busIds, links)));
    lines.addAll(reach(devices, devices.count()));
    return lines;
  }

  private static String of(DeviceCalls devices, int device) {
    return String.format(
        Locale.ROOT,
        "cuda:%d %s, compute capability %d.%d, %.0f GiB, PCI %s%s%s%s",
        device,
        devices.name(device),
        devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MAJOR),
        devices.attribute(device, DeviceAttribute.COMPUTE_CAPABILITY_MINOR),
        devices.totalBytes(device) / GIB,
        devices.pciBusId(device),
        yes(devices, device, DeviceAttribute.POSIX_HANDLES, ", fd handles"),
        yes(devices, device, DeviceAttribute.FABRIC_HANDLES, ", fabric handles"),
        yes(devices, device, DeviceAttribute.MULTICAST, ", multicast"));
  }

  private static String yes(
      DeviceCalls devices, int device, DeviceAttribute attribute, String text) {
    return devices.attribute(device, attribute) == 0 ? "" : text;
  }

  /** Lists the devices that cannot reach each other's memory; empty for a single device. */
  private static List<String> reach(DeviceCalls devices, int count) {
    if (count < 2) {
      return List.of();
    }
    List<String> cut = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count; j++) {
        if (i != j && !devices.canAccessPeer(i, j)) {
          cut.add("cuda:" + i + " cannot reach the memory of cuda:" + j);
        }
      }
    }
    return cut.isEmpty() ? List.of("all devices reach each other's memory") : cut;
  }

  /** Describes links: one line if all pairs are alike, otherwise one line per device. */
  private static List<String> links(LinkMatrix matrix) {
    if (!matrix.problem().isEmpty()) {
      return List.of("NVLinks unknown: " + matrix.problem());
    }
    if (matrix.size() < 2) {
      return List.of();
    }
    int first = matrix.count(0, 1);
    boolean alike = true;
    List<String> rows = new ArrayList<>();
    for (int i = 0; i < matrix.size(); i++) {
      StringBuilder row = new StringBuilder("NVLinks of cuda:" + i + ":");
      for (int j = 0; j < matrix.size(); j++) {
        row.append(' ').append(i == j ? "-" : String.valueOf(matrix.count(i, j)));
        alike &= i == j || matrix.count(i, j) == first;
      }
      rows.add(row.toString());
    }
    return alike ? List.of(first + " NVLinks between each pair of devices") : rows;
  }
}
