package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.Codec;
import dev.tutti.DType;
import dev.tutti.OpType;
import java.util.List;

/** Tests of the object collectives: every length, every root, and codecs that fail. */
public interface ObjectContract extends GroupContract {
  /** Gathers strings of different lengths on all ranks. */
  @ContractTest(
      onHost = true,
      needs = OpType.ALL_GATHER_INTO,
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void allGatherObjectCollectsEachText(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int length : lengths(member)) {
            assertThat(member.group().allGatherObject(text(member.rank(), length), Codec.STRING))
                .isEqualTo(texts(member, length));
          }
        });
  }

  /** Broadcasts an object from each root. */
  @ContractTest(
      onHost = true,
      needs = OpType.BROADCAST,
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void broadcastObjectCopiesTheRootsText(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int length : lengths(member)) {
            for (int root : world.roots()) {
              String mine = member.rank() == root ? text(root, length) : null;
              assertThat(member.group().broadcastObject(mine, root, Codec.STRING))
                  .isEqualTo(text(root, length));
            }
          }
        });
  }

  /** Gathers objects on each root; other ranks get none. */
  @ContractTest(
      onHost = true,
      needs = {OpType.ALL_GATHER_INTO, OpType.GATHER},
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void gatherObjectCollectsOnTheRoot(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int length : lengths(member)) {
            for (int root : world.roots()) {
              List<String> gathered =
                  member.group().gatherObject(text(member.rank(), length), root, Codec.STRING);
              assertThat(gathered)
                  .isEqualTo(member.rank() == root ? texts(member, length) : List.of());
            }
          }
        });
  }

  /** Sends objects of every length around the ring of ranks. */
  @ContractTest(
      onHost = true,
      needs = {OpType.SEND, OpType.RECV},
      types = {DType.INT64, DType.UINT8},
      movesData = true,
      minSize = 2)
  default void sendObjectHandsATextOn(ContractWorld world) throws Exception {
    world.run(
        member -> {
          int last = member.size() - 1;
          for (int length : lengths(member)) {
            if (member.rank() > 0) {
              assertThat(member.group().recvObject(member.rank() - 1, Codec.STRING))
                  .isEqualTo(text(0, length));
            }
            if (member.rank() < last) {
              member.group().sendObject(text(0, length), member.rank() + 1, Codec.STRING);
            }
          }
        });
  }

  /** Scatters objects from each root. */
  @ContractTest(
      onHost = true,
      needs = {OpType.BROADCAST, OpType.SCATTER},
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void scatterObjectHandsOutTheRootsTexts(ContractWorld world) throws Exception {
    world.run(
        member -> {
          for (int length : lengths(member)) {
            for (int root : world.roots()) {
              List<String> values = member.rank() == root ? texts(member, length) : List.of();
              assertThat(member.group().scatterObject(values, root, Codec.STRING))
                  .isEqualTo(text(member.rank(), length));
            }
          }
        });
  }

  /** Moves bytes as they are. */
  @ContractTest(
      onHost = true,
      needs = OpType.BROADCAST,
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void broadcastObjectKeepsEveryByte(ContractWorld world) throws Exception {
    byte[] all = new byte[256];
    for (int i = 0; i < all.length; i++) {
      all[i] = (byte) i;
    }
    world.run(
        member ->
            assertThat(
                    member.group().broadcastObject(member.rank() == 0 ? all : null, 0, Codec.BYTES))
                .isEqualTo(all));
  }

  /** Throws the exception that a codec throws while decoding, and leaves the group usable. */
  @ContractTest(
      onHost = true,
      needs = OpType.BROADCAST,
      types = {DType.INT64, DType.UINT8},
      movesData = true)
  default void aCodecThatCannotReadFailsItsCallOnly(ContractWorld world) throws Exception {
    Codec<String> broken =
        new Codec<>() {
          @Override
          public byte[] encode(String value) {
            return Codec.STRING.encode(value);
          }

          @Override
          public String decode(byte[] bytes) {
            throw new IllegalArgumentException("unreadable");
          }
        };
    world.run(
        member -> {
          assertThatThrownBy(() -> member.group().broadcastObject("text", 0, broken))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("unreadable");
          member.assertUsable();
        });
  }

  private static int[] lengths(Member member) {
    return new int[] {0, 1, 100, member.world().isLarge() ? 10_000 : 1 << 20};
  }

  /**
   * Creates a string with a different length on each rank, and with characters of one to three
   * bytes.
   */
  private static String text(int rank, int length) {
    String pattern = rank + "\u00e9\u20ac";
    return pattern.repeat(length / 3 + 1).substring(0, length == 0 ? 0 : length - rank % 2);
  }

  private static List<String> texts(Member member, int length) {
    return member.ranks().stream().map(rank -> text(rank, length)).toList();
  }
}
