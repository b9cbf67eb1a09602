package dev.tutti.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Device;
import dev.tutti.Tensor;
import dev.tutti.fake.ThreadedWorld;
import dev.tutti.state.ShardedState;
import dev.tutti.state.StatePart;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests that tensors on a device are saved and loaded, alone and beside tensors on the host. */
class DeviceTensorsTest {
  /** More than is read at once, and not a multiple of it. */
  private static final long LARGE = (33L << 20) / 4 + 7;

  @TempDir Path folder;

  /** Ten elements on the device, of which each of two ranks holds a half. */
  private record Half(Tensor elements, int rank) implements ShardedState {
    @Override
    public List<StatePart> parts() {
      return List.of(new StatePart("run", new long[] {10}, 5L * rank, elements));
    }

    @Override
    public Map<String, Long> counters() {
      return Map.of();
    }

    @Override
    public void restored(Map<String, Long> counters) {}
  }

  private static List<Tensor> tensors(double value) {
    List<Tensor> tensors = new ArrayList<>();
    tensors.add(PlayedDevice.filled(DType.FLOAT32, value, LARGE));
    tensors.add(Tensor.allocate(DType.FLOAT32, 3, 5).fill(value + 1));
    for (int i = 2; i < 6; i++) {
      tensors.add(PlayedDevice.filled(DType.BFLOAT16, value + i, 7, i));
    }
    tensors.add(PlayedDevice.filled(DType.INT64, value + 6));
    tensors.add(PlayedDevice.filled(DType.FLOAT32, 0, 0, 3));
    return tensors;
  }

  private static void assertFilled(Tensor tensor, double value) {
    Tensor host = tensor.device().isCpu() ? tensor : PlayedDevice.read(tensor);
    Tensor expected = Tensor.allocate(tensor.dtype(), tensor.shape()).fill(value);
    assertThat(host.segment().mismatch(expected.segment())).isEqualTo(-1);
  }

  @Test
  void tensorsOnTheDeviceComeBack() {
    List<String> names = List.of("a", "b", "c", "d", "e", "f", "g", "h");
    ThreadedWorld.run(
        2,
        group -> {
          Contents contents =
              Contents.of()
                  .copies("model", names, tensors(10))
                  .parts(
                      "state",
                      new Half(PlayedDevice.filled(DType.FLOAT32, group.rank(), 5), group.rank()));
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.save(1, contents).await();
          }
        });
    ThreadedWorld.run(
        2,
        group -> {
          List<Tensor> loaded = tensors(0);
          Half half = new Half(PlayedDevice.filled(DType.FLOAT32, 9, 5), group.rank());
          try (Checkpoints saved = Checkpoints.in(group, folder)) {
            saved.loadLatest(Contents.of().copies("model", names, loaded).parts("state", half));
          }
          for (int i = 0; i < 7; i++) {
            assertFilled(loaded.get(i), 10 + i);
          }
          assertThat(PlayedDevice.read(half.elements).toFloatArray()).containsOnly(group.rank());
        });
  }

  @Test
  void tensorsThatCannotBeCopiedAreRefused() {
    Contents none = Contents.of();
    Tensor strided = PlayedDevice.filled(DType.FLOAT32, 1, 2, 3).transpose(0, 1);
    assertThatThrownBy(() -> none.copies("m", List.of("t"), List.of(strided)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("contiguous if it is on a device, not float32[3, 2]");
    Tensor one = Tensor.allocate(DType.FLOAT32, 1);
    Tensor elsewhere =
        Tensor.wrap(
            one.segment(), DType.FLOAT32, new long[] {1}, new long[] {1}, new Device("moon", 0));
    assertThatThrownBy(() -> none.copies("m", List.of("t"), List.of(elsewhere)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "tensor 't' of section 'm' is on moon:0, and no module on the class path has tensors"
                + " there");
  }
}
