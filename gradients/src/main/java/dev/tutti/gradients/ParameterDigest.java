package dev.tutti.gradients;

import dev.tutti.Codec;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;

/** The comparison of the parameters of all ranks by checksums, if the options say so. */
final class ParameterDigest {
  private static final int BLOCK = 1 << 16;
  private static final String SEPARATOR = "\n";

  private final ProcessGroup group;
  private final int steps;
  private final Supplier<? extends SequencedMap<String, Tensor>> digested;

  ParameterDigest(ProcessGroup group, ParameterList parameters, ReducerOptions options) {
    this.group = group;
    this.steps = options.digestSteps();
    var given = options.digested();
    this.digested = given == null ? () -> named(parameters) : given;
  }

  private static SequencedMap<String, Tensor> named(ParameterList parameters) {
    SequencedMap<String, Tensor> named = new LinkedHashMap<>();
    for (int i = 0; i < parameters.count(); i++) {
      named.put(parameters.describe(i), parameters.get(i));
    }
    return named;
  }

  boolean isDue(long step) {
    return steps > 0 && step % steps == 0;
  }

  /** Compares the parameters; all ranks call it, and all get the first difference, or null. */
  @Nullable String difference() {
    String own =
        digested.get().entrySet().stream()
            .map(each -> line(each.getKey(), each.getValue()))
            .collect(Collectors.joining(SEPARATOR));
    List<String> all = group.allGatherObject(own, Codec.STRING);
    String[] expected = all.getFirst().split(SEPARATOR, -1);
    for (int rank = 1; rank < all.size(); rank++) {
      String[] found = all.get(rank).split(SEPARATOR, -1);
      int line = Arrays.mismatch(expected, found);
      if (line >= 0) {
        return "the parameters of ranks have drifted apart: rank 0 has %s, rank %d has %s"
            .formatted(at(expected, line), rank, at(found, line));
      }
    }
    return null;
  }

  private static String at(String[] lines, int line) {
    return line < lines.length ? lines[line] : "none";
  }

  private static String line(String name, Tensor tensor) {
    return "%s of %s%s with checksum %08x"
        .formatted(
            name.replace(SEPARATOR, " "),
            tensor.dtype().label(),
            Arrays.toString(tensor.shape()),
            checksum(tensor));
  }

  private static int checksum(Tensor tensor) {
    CRC32C checksum = new CRC32C();
    MemorySegment memory = tensor.contiguous().segment();
    byte[] block = new byte[(int) Math.min(BLOCK, tensor.byteSize())];
    for (long start = 0; start < tensor.byteSize(); start += block.length) {
      int length = (int) Math.min(block.length, tensor.byteSize() - start);
      MemorySegment.ofArray(block).copyFrom(memory.asSlice(start, length));
      checksum.update(block, 0, length);
    }
    return (int) checksum.getValue();
  }
}
