package dev.tutti.cuda;

import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.cuda.provider.CudaBackendProvider;
import dev.tutti.cuda.settings.CudaSettings;
import java.time.Duration;

/** One rank in a process of its own, on the first device. */
final class GpuRankChild {
  private GpuRankChild() {}

  public static void main(String[] args) {
    int rank = Integer.parseInt(args[1]);
    CudaDevice device = Cuda.get().device(0);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withInitMethod("file://" + args[0])
            .withRank(rank)
            .withSize(Integer.parseInt(args[2]))
            .withDevice(Device.cuda(0))
            .withProvider(new CudaBackendProvider())
            .withTimeout(Duration.ofSeconds(60))
            .withSetting(CudaSettings.OVERLAPPING_DEVICES.name(), "1");
    try (CudaStream.Scope _ = device.poolStream().use();
        ProcessGroup group = ProcessGroup.init(options)) {
      new OperationChecks(group, device).all(1, 1000);
      group.store().barrier("done", group.size(), Duration.ofSeconds(60));
    }
    System.out.println("good");
  }
}
