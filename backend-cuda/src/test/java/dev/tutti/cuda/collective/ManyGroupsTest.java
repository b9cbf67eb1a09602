package dev.tutti.cuda.collective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.CudaEvent;
import dev.tutti.cuda.CudaRanks;
import dev.tutti.cuda.CudaStream;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.ManyGroups;
import dev.tutti.cuda.OperationChecks;
import dev.tutti.cuda.Until;
import dev.tutti.cuda.access.Multiprocessors;
import dev.tutti.cuda.access.Parts;
import dev.tutti.cuda.driver.DeviceAttribute;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tests groups whose kernels together need more blocks than a device has room for. */
class ManyGroupsTest {
  private static final int ROOM = 8;
  private static final int LANES = 4;
  private static final int LENGTH = 2000; // of which kernels have all lanes

  private final FakeMachine machine = new FakeMachine(3);

  ManyGroupsTest() {
    machine.fake.setAttribute(DeviceAttribute.MULTIPROCESSORS, ROOM);
  }

  private CudaRanks ranks() {
    return new CudaRanks(machine.cuda).with("TUTTI_X_CUDA_LANES", String.valueOf(LANES));
  }

  @AfterEach
  void close() {
    machine.close();
  }

  @Test
  void threeGroupsInCyclicOrderDoNotWaitForEachOther() throws Exception {
    machine.fake.blocks().limit(ROOM);
    CyclicBarrier all = new CyclicBarrier(3);
    ranks()
        .run(
            3,
            (group, device) -> {
              try (ManyGroups groups = new ManyGroups(3, group, device, LENGTH)) {
                int rank = group.rank();
                groups.fill(rank);
                all.await();
                int begun = machine.fake.blocks().begun(rank);
                groups.allReduce(rank);
                Until.holds("the first", () -> machine.fake.blocks().begun(rank) >= begun + LANES);
                groups.allReduce((rank + 1) % 3);
                Until.holds("the second", () -> machine.fake.blocks().begun(rank) > begun + LANES);
                all.await();
                groups.allReduce((rank + 2) % 3);
                for (int i = 0; i < 3; i++) {
                  assertThat(groups.result(i)).containsOnly(3 + 3f * i);
                }
              }
            });
    assertThat(machine.fake.blocks().free(0)).isEqualTo(ROOM);
  }

  @Test
  void threeGroupsInAnyOrderGoOn() throws Exception {
    machine.fake.blocks().limit(ROOM);
    ManyGroups.inCyclicOrder(ranks(), 3, LENGTH, 5);
  }

  private List<String> grids() {
    return machine.fake.calls("cuLaunchKernel").stream()
        .filter(call -> call.contains("shot"))
        .map(call -> call.split("[ x]")[2])
        .toList();
  }

  @Test
  void twoGroupsHaveAllLanes() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              try (ManyGroups groups = new ManyGroups(2, group, device, LENGTH)) {
                groups.fill(0);
                groups.allReduce(0);
                groups.allReduce(1);
                groups.result(0);
                groups.result(1);
              }
            });
    assertThat(grids()).containsOnly("4");
  }

  @Test
  void groupsOfOneStreamHaveAllLanes() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              try (ManyGroups groups = new ManyGroups(5, group, device, LENGTH)) {
                groups.fill(0);
                CudaStream stream = device.poolStream();
                for (int i = 0; i < 5; i++) {
                  groups.allReduce(i, stream);
                }
                stream.await(Until.LONG);
              }
            });
    assertThat(grids()).hasSize(10).containsOnly("4");
  }

  @Test
  void operationsInPartsHaveTheSameResults() throws Exception {
    ranks()
        .run(
            2,
            (group, device) ->
                ManyGroups.withOneBlock(
                    device, () -> new OperationChecks(group, device).all(1000)));
    assertThat(machine.fake.calls("cuLaunchKernel"))
        .filteredOn(call -> call.contains("tutti_exchange") || call.contains("shot"))
        .isNotEmpty()
        .allMatch(call -> call.contains(" 1x"));
  }

  private CudaDevice deviceOfThreeChannels() {
    machine.fake.setAttribute(DeviceAttribute.MULTIPROCESSORS, 132);
    CudaDevice device = machine.cuda.device(0);
    for (int i = 0; i < 3; i++) {
      Parts.of(device).multiprocessors().enter();
    }
    return device;
  }

  /** Lends, as for a kernel that is then launched. */
  private static int lend(CudaStream stream, int blocks) {
    Multiprocessors ledger = Parts.of(stream.device()).multiprocessors();
    int lent = ledger.lend(stream.handle(), blocks);
    ledger.launched(stream.handle(), Parts.of(stream.record()));
    return lent;
  }

  @Test
  void streamsThatMeetShareFairlyUntilTheyNoLongerMeet() {
    CudaDevice device = deviceOfThreeChannels();
    CudaStream first = device.poolStream();
    CudaStream second = device.poolStream();
    CountDownLatch held = machine.hold(first);
    assertThat(lend(first, 128)).isEqualTo(128);
    assertThat(lend(second, 128)).as("what is left").isEqualTo(1);
    assertThat(lend(first, 128)).as("half, from now on").isEqualTo(64);
    assertThat(lend(second, 128)).as("the large kernel still runs").isEqualTo(1);
    held.countDown();
    first.await(Until.LONG);
    for (int i = 0; i < 1000; i++) {
      assertThat(lend(first, 128)).isEqualTo(64);
      assertThat(lend(second, 128)).isEqualTo(64);
    }
    second.await(Until.LONG);
    for (int i = 0; i < 512; i++) {
      assertThat(lend(first, 128)).isIn(64, 128);
    }
    assertThat(lend(first, 128)).as("no longer shared").isEqualTo(128);
  }

  @Test
  void kernelsOfACaptureAreNotCounted() {
    CudaDevice device = deviceOfThreeChannels();
    Multiprocessors ledger = Parts.of(device).multiprocessors();
    CudaStream first = device.poolStream();
    assertThat(ledger.lend(first.handle(), 128)).isEqualTo(128);
    ledger.takeBack(first.handle());
    assertThat(lend(device.poolStream(), 128)).isEqualTo(128);
  }

  @Test
  void aLaunchThatFailsKeepsNothing() throws Exception {
    ranks()
        .run(
            2,
            (group, device) -> {
              try (ManyGroups groups = new ManyGroups(3, group, device, LENGTH)) {
                groups.fill(0);
                group.store().barrier("filled", 2, Until.LONG);
                if (group.rank() == 0) {
                  machine.fake.failOn("cuLaunchKernel", 1, 1);
                  assertThatThrownBy(() -> groups.allReduce(1))
                      .hasStackTraceContaining("cuLaunchKernel failed");
                  assertThat(lend(device.poolStream(), LANES)).isEqualTo(LANES);
                }
                group.store().barrier("failed", 2, Until.LONG);
              }
            });
  }

  @Test
  void processesThatShareADeviceKeepToTheirParts() {
    machine.fake.setAttribute(DeviceAttribute.MULTIPROCESSORS, 132);
    CudaDevice device = machine.cuda.device(0);
    Multiprocessors ledger = Parts.of(device).multiprocessors();
    ledger.shareAmong(2);
    ledger.shareAmong(1);
    ledger.enter();
    ledger.enter();
    CudaStream first = device.poolStream();
    CountDownLatch held = machine.hold(first);
    assertThat(lend(first, 64)).as("half of all lanes").isEqualTo(64);
    assertThat(lend(device.poolStream(), 64)).as("what is left of half").isEqualTo(1);
    held.countDown();
  }

  @Test
  void lendingAllocatesNothing() {
    CudaStream stream = deviceOfThreeChannels().poolStream();
    Multiprocessors ledger = Parts.of(stream.device()).multiprocessors();
    CudaEvent end = stream.record();
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int round = 0; round < 20; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 1000; i++) {
        int _ = ledger.lend(stream.handle(), 1 + i % 128);
        ledger.launched(stream.handle(), Parts.of(end));
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    assertThat(least).isZero();
    end.close();
  }
}
