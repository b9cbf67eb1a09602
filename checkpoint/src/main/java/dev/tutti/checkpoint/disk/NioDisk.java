package dev.tutti.checkpoint.disk;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** The file system of this host. */
public final class NioDisk implements Disk {
  @Override
  public void createFolder(Path folder) throws IOException {
    Files.createDirectory(folder);
  }

  @Override
  public Output create(Path file) throws IOException {
    DirectFile channels = new DirectFile(file, true, CREATE_NEW, WRITE);
    return new Output() {
      @Override
      public void write(long position, ByteBuffer bytes) throws IOException {
        channels.write(position, bytes);
      }

      @Override
      public void force() throws IOException {
        channels.force();
      }

      @Override
      public void close() throws IOException {
        channels.close();
      }
    };
  }

  @Override
  public Input open(Path file, boolean cached) throws IOException {
    if (Files.exists(file) && !Files.isRegularFile(file)) {
      // A pipe would wait for somebody who writes.
      throw new FileSystemException(file.toString(), null, "not a regular file");
    }
    DirectFile channels = new DirectFile(file, !cached, READ);
    return new Input() {
      @Override
      public long length() throws IOException {
        return channels.length();
      }

      @Override
      public void read(long position, ByteBuffer bytes) throws IOException {
        channels.read(position, bytes);
      }

      @Override
      public void close() throws IOException {
        channels.close();
      }
    };
  }

  @Override
  public boolean isFile(Path path) {
    Path folder = path.getParent();
    return Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)
        && (folder == null || Files.isDirectory(folder, LinkOption.NOFOLLOW_LINKS));
  }

  @Override
  public void forceFolder(Path folder) throws IOException {
    try (FileChannel channel = FileChannel.open(folder, READ)) {
      channel.force(true);
    }
  }

  @Override
  public void rename(Path from, Path to) throws IOException {
    if (Files.exists(to, LinkOption.NOFOLLOW_LINKS)) {
      throw new FileAlreadyExistsException(to.toString());
    }
    Files.move(from, to, StandardCopyOption.ATOMIC_MOVE);
  }

  @Override
  public List<String> list(Path folder) throws IOException {
    List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      for (Path entry : entries) {
        names.add(entry.getFileName().toString());
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    Collections.sort(names);
    return names;
  }

  @Override
  public void delete(Path path) throws IOException {
    if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
      for (String name : list(path)) {
        delete(path.resolve(name));
      }
    }
    Files.delete(path);
  }
}
