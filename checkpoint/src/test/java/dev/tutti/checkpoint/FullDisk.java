package dev.tutti.checkpoint;

import dev.tutti.checkpoint.disk.Disk;
import dev.tutti.checkpoint.disk.NioDisk;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;

/** The disk of this host, which is full if it is set so. */
class FullDisk implements Disk {
  private final Disk disk = new NioDisk();
  private final boolean full;

  FullDisk(boolean full) {
    this.full = full;
  }

  @Override
  public Output create(Path file) throws IOException {
    Output output = disk.create(file);
    return new Output() {
      @Override
      public void write(long position, ByteBuffer bytes) throws IOException {
        if (full) {
          throw new IOException(file + ": No space left on device");
        }
        output.write(position, bytes);
      }

      @Override
      public void force() throws IOException {
        output.force();
      }

      @Override
      public void close() throws IOException {
        output.close();
      }
    };
  }

  @Override
  public void createFolder(Path path) throws IOException {
    disk.createFolder(path);
  }

  @Override
  public Input open(Path file, boolean cached) throws IOException {
    return disk.open(file, cached);
  }

  @Override
  public boolean isFile(Path path) throws IOException {
    return disk.isFile(path);
  }

  @Override
  public void forceFolder(Path path) throws IOException {
    disk.forceFolder(path);
  }

  @Override
  public void rename(Path from, Path to) throws IOException {
    disk.rename(from, to);
  }

  @Override
  public List<String> list(Path path) throws IOException {
    return disk.list(path);
  }

  @Override
  public void delete(Path path) throws IOException {
    disk.delete(path);
  }
}
