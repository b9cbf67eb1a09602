package dev.tutti.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import dev.tutti.BackendException;
import dev.tutti.DType;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.block.CudaStreamBlockProvider;
import dev.tutti.cuda.driver.CudaDrivers;
import dev.tutti.cuda.driver.DeviceAttribute;
import dev.tutti.cuda.driver.FakeCudaDriver;
import dev.tutti.kernels.KernelImage;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class CudaTest {
  private static Cuda cuda(FakeCudaDriver fake) {
    return new Cuda(fake.driver(), fake.links(), () -> new byte[1]);
  }

  @Test
  void anOldDriverIsRefused() {
    try (FakeCudaDriver fake = new FakeCudaDriver(1)) {
      fake.setVersion(12040);
      assertThatThrownBy(() -> cuda(fake))
          .isInstanceOf(BackendException.class)
          .hasMessage(
              "the NVIDIA driver supports CUDA 12.4, but 13.0 is required; install a newer driver");
    }
  }

  @Test
  void aMachineWithoutDevicesIsRefused() {
    try (FakeCudaDriver fake = new FakeCudaDriver(0)) {
      assertThatThrownBy(() -> cuda(fake))
          .isInstanceOf(BackendException.class)
          .hasMessageContaining("finds no GPU")
          .hasMessageContaining("CUDA_VISIBLE_DEVICES");
    }
  }

  @Test
  void noDeviceIsTouchedBeforeItIsAskedFor() {
    try (FakeMachine machine = new FakeMachine(2)) {
      assertThat(machine.cuda.deviceCount()).isEqualTo(2);
      assertThat(Parts.of(machine.cuda).findings()).hasSize(5);
      assertThat(machine.fake.living()).isEmpty();
      assertThat(machine.cuda.device(1)).isSameAs(machine.cuda.device(1));
      assertThat(machine.fake.calls("cuDevicePrimaryCtxRetain"))
          .containsExactly("cuDevicePrimaryCtxRetain 1");
      assertThatThrownBy(() -> machine.cuda.device(2))
          .isInstanceOf(IndexOutOfBoundsException.class)
          .hasMessage("no device cuda:2; devices that this process may use: 2");
    }
  }

  @Test
  void aDeviceThatCannotBeConnectedIsGivenUp() {
    try (FakeMachine machine = new FakeMachine(2)) {
      machine.cuda.device(0).tensors().allocate(DType.INT8, 1);
      machine.fake.failOn("cuMemSetAccess", 1, 1);
      assertThatThrownBy(() -> machine.cuda.device(1)).isInstanceOf(CudaException.class);
      assertThat(machine.fake.living("context")).isOne();
      assertThat(machine.cuda.device(1).index()).isOne();
    }
  }

  @Test
  void theOthersForgetADeviceThatWasGivenUp() {
    try (FakeMachine machine = new FakeMachine(3)) {
      machine.cuda.device(0).tensors().allocate(DType.INT8, 1);
      machine.cuda.device(1).tensors().allocate(DType.INT8, 1);
      machine.fake.failOn("cuMemSetAccess", 2, 1);
      assertThatThrownBy(() -> machine.cuda.device(2)).isInstanceOf(CudaException.class);
      machine.fake.clearCalls();
      machine.cuda.device(0).tensors().allocate(DType.INT8, 3 << 20);
      assertThat(machine.fake.calls("cuMemSetAccess"))
          .map(call -> call.substring(call.lastIndexOf(' ') + 1))
          .containsExactly("0", "1");
      CudaDevice device = machine.cuda.device(0);
      assertThat(device.sharable().allocate(1, device.defaultStream().forBlocks())).isNotNull();
      assertThat(machine.fake.calls("cuCtxEnablePeerAccess")).hasSize(1);
    }
  }

  @Test
  void devicesThatAreOlderThanTheKernelsAreNamed() {
    String old = "cuda:%d (Fake H200) has compute capability 7.5, but 8.0 or newer is required";
    try (FakeMachine machine = new FakeMachine(2)) {
      machine.fake.setAttribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, 7);
      machine.fake.setAttribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR, 5);
      assertThatThrownBy(() -> machine.cuda.device(1))
          .isInstanceOf(BackendException.class)
          .hasMessage(old, 1);
      assertThat(new CudaStreamBlockProvider(() -> machine.cuda).findings())
          .contains(old.formatted(0), old.formatted(1));
      assertThatThrownBy(() -> cuda(machine.fake))
          .isInstanceOf(BackendException.class)
          .hasMessage(old.formatted(0) + "; " + old.formatted(1));
      machine.fake.setAttribute(DeviceAttribute.COMPUTE_CAPABILITY_MAJOR, 8);
      machine.fake.setAttribute(DeviceAttribute.COMPUTE_CAPABILITY_MINOR, 0);
      assertThat(machine.cuda.device(1).computeCapability())
          .isEqualTo(CudaDrivers.REQUIRED_CAPABILITY);
    }
  }

  @Test
  void theRequiredCapabilityIsTheOldestOfTheKernels() {
    assertThat(
            Pattern.compile("compute_(\\d+)")
                .matcher(KernelImage.record().getProperty("targets"))
                .results()
                .mapToInt(match -> Integer.parseInt(match.group(1)))
                .min())
        .hasValue(CudaDrivers.REQUIRED_CAPABILITY);
  }

  @Test
  void findingsNameDevicesAndLinks() {
    try (FakeMachine machine = new FakeMachine(2)) {
      assertThat(new CudaStreamBlockProvider(() -> machine.cuda).findings())
          .containsExactly(
              "the driver supports CUDA 13.0",
              "cuda:0 Fake H200, compute capability 9.0, 1 GiB, PCI 0000:1B:00.0, fd handles,"
                  + " fabric handles, multicast",
              "cuda:1 Fake H200, compute capability 9.0, 1 GiB, PCI 0000:1C:00.0, fd handles,"
                  + " fabric handles, multicast",
              "18 NVLinks between each pair of devices",
              "all devices reach each other's memory");
      machine.fake.cutLink(0, 1);
      assertThat(new CudaStreamBlockProvider(() -> machine.cuda).findings())
          .contains("cuda:0 cannot reach the memory of cuda:1");
    }
  }

  @Test
  void nothingIsLeftAfterManyCycles() {
    try (FakeCudaDriver fake = new FakeCudaDriver(1)) {
      for (int i = 0; i < 20; i++) {
        Cuda cuda = cuda(fake);
        cuda.device(0).tensors().allocate(DType.FLOAT32, 1000);
        cuda.device(0).poolStream().await(Until.LONG);
        assertThat(fake.living()).containsKeys("context", "addresses", "event", "stream");
        cuda.close();
        assertThat(fake.living()).isEmpty();
      }
    }
  }

  @Test
  void aClosedDriverRefusesWork() {
    FakeMachine machine = new FakeMachine(2);
    CudaDevice device = machine.cuda.device(0);
    machine.cuda.close();
    assertThatThrownBy(() -> machine.cuda.device(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(device::poolStream).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> device.events().acquire()).isInstanceOf(IllegalStateException.class);
    machine.close();
  }

  @Test
  void aMachineWithoutADriverSaysWhatIsMissing() {
    assumeThat(CudaDrivers.missing()).as("this machine has a driver").isPresent();
    assertThat(Cuda.unusableReason())
        .hasValueSatisfying(
            reason ->
                assertThat(reason)
                    .startsWith("no NVIDIA driver: the loader cannot find libcuda.so.1")
                    .contains("CUDA 13.0"));
    assertThatThrownBy(Cuda::get)
        .isInstanceOf(BackendException.class)
        .hasMessageStartingWith("no NVIDIA driver");
    assertThat(new CudaStreamBlockProvider().unusableReason()).isEqualTo(Cuda.unusableReason());
  }
}
