package dev.tutti.cli.snippets;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.GroupOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.cpu.HostReducer;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.gloo.GlooProvider;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.kernels.Kernel;
import dev.tutti.kernels.KernelImage;
import dev.tutti.kernels.Kernels;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Runs those examples of backends and devices that need no GPU. */
class DeviceSnippetsTest {
  /** Needs a GPU, and so is only compiled. */
  static void cuda() {
    // @start region="cuda"
    CudaDevice device = Cuda.get().device(0);
    try (ProcessGroup gpus = ProcessGroup.init(GroupOptions.DEFAULT.withDevice(Device.cuda(0)))) {
      Tensor tensor = device.tensors().allocate(DType.BFLOAT16, 1 << 20);
      gpus.allReduce(tensor); // in the order of the current stream
      Tensor host = device.tensors().toHost(tensor);
      System.out.println(host.getFloat(0));
    }
    // @end
  }

  static GroupOptions gloo() {
    // @start region="gloo"
    GroupOptions options = GroupOptions.DEFAULT.withBackend("gloo");
    // @end
    return options;
  }

  static GroupOptions glooWithDevices(GlooDeviceProvider devices) {
    // @start region="gloo-devices"
    GroupOptions options = GroupOptions.DEFAULT.withProvider(new GlooProvider(List.of(devices)));
    // @end
    return options;
  }

  @Test
  void reduce() {
    // @start region="reduce"
    Tensor sum = Tensor.of(1f, 2f, 3f);
    Tensor other = Tensor.of(10f, 20f, 30f);
    HostReducer.reduce(
        ReduceOp.Kind.SUM, DType.FLOAT32, sum.segment(), 0, other.segment(), 0, sum.numel());
    // @end
    assertThat(sum.toFloatArray()).containsExactly(11, 22, 33);
  }

  @Test
  void kernels() {
    // @start region="kernels"
    byte[] image = KernelImage.read(); // for cuModuleLoadData
    Kernel kernel = Kernels.oneShot(DType.BFLOAT16, ReduceOp.Kind.SUM);
    // @end
    assertThat(image).isNotEmpty();
    assertThat(kernel).isNotNull();
  }
}
