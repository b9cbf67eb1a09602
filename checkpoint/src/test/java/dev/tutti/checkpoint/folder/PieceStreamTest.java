package dev.tutti.checkpoint.folder;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.disk.ModelDisk;
import dev.tutti.checkpoint.format.FileRecord;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests that pieces come in their order, each in a place of its own, and files are closed. */
class PieceStreamTest {
  private static final Path ROOT = Path.of("/root");

  private final Disk disk = new ModelDisk(ROOT);
  private final List<FileRecord> files = new ArrayList<>();
  private final List<Piece> pieces = new ArrayList<>();

  /** Creates a file whose bytes are its number in the lists. */
  private void create(int size) throws IOException {
    byte[] bytes = new byte[size];
    Arrays.fill(bytes, (byte) files.size());
    String name = "f" + files.size();
    try (Disk.Output output = disk.create(ROOT.resolve(name))) {
      output.write(0, ByteBuffer.wrap(bytes));
      output.force();
    }
    FileRecord record = FileRecord.of(name, bytes);
    for (int i = 0; i < record.checksums().size(); i++) {
      pieces.add(new Piece(files.size(), i));
    }
    files.add(record);
  }

  private PieceReader reader() {
    return new PieceReader(disk, ROOT, files, true);
  }

  private static byte first(MemorySegment bytes) {
    return bytes.get(ValueLayout.JAVA_BYTE, 0);
  }

  private static byte last(MemorySegment bytes) {
    return bytes.get(ValueLayout.JAVA_BYTE, bytes.byteSize() - 1);
  }

  @Test
  void piecesComeInOrder() throws IOException {
    create(5000);
    create(9 * FileRecord.PIECE + 1);
    create(1);
    create(4 * FileRecord.PIECE);
    create(FileRecord.PIECE);
    PieceReader reader = reader();
    List<PieceBatch> batches = PieceBatch.of(reader, pieces);
    assertThat(batches).extracting(batch -> batch.places().size()).containsExactly(4, 4, 5, 4);
    assertThat(PieceBatch.longest(batches)).isEqualTo(4L * FileRecord.PIECE);
    List<Piece> seen = new ArrayList<>();
    try (PieceStream stream = new PieceStream(reader, batches)) {
      for (PieceBatch batch : batches) {
        MemorySegment memory = stream.next();
        assertThat(memory.address() % Disk.ALIGNMENT).isZero();
        batch.forEach(
            memory,
            (piece, bytes) -> {
              seen.add(piece);
              assertThat(bytes.byteSize()).isEqualTo(reader.length(piece));
              assertThat(first(bytes)).isEqualTo((byte) piece.file());
              assertThat(last(bytes)).isEqualTo((byte) piece.file());
            });
        stream.use(memory);
      }
    }
    assertThat(seen).isEqualTo(pieces);
  }

  @Test
  void aFaultOfAPieceIsThatOfItsBatch() throws IOException {
    create(FileRecord.PIECE);
    create(20);
    files.set(1, new FileRecord("f1", 20, List.of(5)));
    PieceReader reader = reader();
    try (PieceStream stream = new PieceStream(reader, PieceBatch.of(reader, pieces))) {
      assertThatThrownBy(stream::next)
          .isInstanceOf(IOException.class)
          .hasMessageStartingWith("/root/f1 is damaged: the CRC32C of its 20 bytes from 0 on is ");
    }
  }

  @Test
  void noPiecesAreNoBatches() throws IOException {
    assertThat(PieceBatch.of(reader(), List.of())).isEmpty();
    new PieceStream(reader(), List.of()).close();
  }
}
