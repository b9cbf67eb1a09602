package dev.tutti.checkpoint.disk;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * A disk in memory that loses in a crash what was not forced: of a file any bytes after the last
 * force, of a folder any of the changes to its names since the last force, each by itself. Fails
 * each call after a number of them, as if the process had been killed there.
 */
public final class ModelDisk implements Disk {
  /** A file or folder, whatever its name. */
  private abstract static sealed class Node {}

  private static final class File extends Node {
    private byte[] bytes = new byte[0];
    private byte[] forced = new byte[0];
  }

  /** A folder: its names now, and the changes that may be lost. */
  private static final class Folder extends Node {
    private final Map<String, Node> names = new TreeMap<>();
    private final Map<String, Node> forced = new TreeMap<>();
    private final List<Change> changes = new ArrayList<>();

    private void change(Change change) {
      change.apply(names);
      changes.add(change);
    }

    private void force() {
      forced.clear();
      forced.putAll(names);
      changes.clear();
    }
  }

  /** A name that went away, and one that came. */
  private record Change(@Nullable String gone, @Nullable String come, @Nullable Node node) {
    private void apply(Map<String, Node> names) {
      if (gone != null) {
        names.remove(gone);
      }
      if (come != null && node != null) {
        names.put(come, node);
      }
    }
  }

  private final Path root;
  private final Folder folder = new Folder();
  private int calls;
  private int lastCall = Integer.MAX_VALUE;

  /** Creates an empty disk. */
  public ModelDisk(Path root) {
    this.root = root;
  }

  /** Returns how many calls there have been. */
  public synchronized int calls() {
    return calls;
  }

  /** Fails all calls after a number of further ones. */
  public synchronized void failAfter(int more) {
    lastCall = calls + more;
  }

  /** Loses what was not forced, or some of it, and works again. */
  public synchronized void crash(Random random) {
    lastCall = Integer.MAX_VALUE;
    crash(folder, random);
  }

  private static void crash(Folder folder, Random random) {
    Map<String, Node> left = new TreeMap<>(folder.forced);
    for (Change change : folder.changes) {
      if (random.nextBoolean()) {
        change.apply(left);
      }
    }
    folder.names.clear();
    folder.names.putAll(left);
    folder.force();
    for (Node node : folder.names.values()) {
      switch (node) {
        case Folder inner -> crash(inner, random);
        case File file -> {
          // Any block may have been written; here from some point on, or with a hole.
          byte[] now = Arrays.copyOf(file.bytes, random.nextInt(file.bytes.length + 1));
          if (now.length < file.forced.length) {
            now = file.forced;
          } else if (random.nextBoolean()) {
            Arrays.fill(now, file.forced.length, now.length, (byte) 0);
          }
          file.bytes = now;
          file.forced = now;
        }
      }
    }
  }

  private synchronized void call(Path path) throws IOException {
    calls++;
    if (calls > lastCall) {
      throw new IOException(path + ": Input/output error");
    }
  }

  private Folder folder(Path path) throws IOException {
    Folder at = folder;
    for (Path name : root.relativize(path)) {
      if (!name.toString().isEmpty()) {
        if (!(at.names.get(name.toString()) instanceof Folder inner)) {
          throw new NoSuchFileException(path.toString());
        }
        at = inner;
      }
    }
    return at;
  }

  private static String name(Path path) {
    return path.getFileName().toString();
  }

  private synchronized void add(Path path, Node node) throws IOException {
    Folder parent = folder(path.getParent());
    if (parent.names.containsKey(name(path))) {
      throw new FileAlreadyExistsException(path.toString());
    }
    parent.change(new Change(null, name(path), node));
  }

  @Override
  public void createFolder(Path path) throws IOException {
    call(path);
    add(path, new Folder());
  }

  @Override
  public Output create(Path path) throws IOException {
    call(path);
    File file = new File();
    add(path, file);
    return new Output() {
      @Override
      public void write(long position, ByteBuffer bytes) throws IOException {
        call(path);
        synchronized (ModelDisk.this) {
          int end = (int) position + bytes.remaining();
          byte[] more = Arrays.copyOf(file.bytes, Math.max(file.bytes.length, end));
          bytes.get(more, (int) position, bytes.remaining());
          file.bytes = more;
        }
      }

      @Override
      public void force() throws IOException {
        call(path);
        synchronized (ModelDisk.this) {
          file.forced = file.bytes;
        }
      }

      @Override
      public void close() {}
    };
  }

  @Override
  public synchronized Input open(Path path, boolean cached) throws IOException {
    call(path);
    if (!(folder(path.getParent()).names.get(name(path)) instanceof File file)) {
      throw new FileNotFoundException(path.toString());
    }
    byte[] bytes = file.bytes;
    return new Input() {
      @Override
      public long length() {
        return bytes.length;
      }

      @Override
      public void read(long position, ByteBuffer target) throws IOException {
        if (position + target.remaining() > bytes.length) {
          throw new EOFException(path.toString());
        }
        target.put(bytes, (int) position, target.remaining());
      }

      @Override
      public void close() {}
    };
  }

  @Override
  public synchronized boolean isFile(Path path) throws IOException {
    call(path);
    return folder(path.getParent()).names.get(name(path)) instanceof File;
  }

  @Override
  public synchronized void forceFolder(Path path) throws IOException {
    call(path);
    folder(path).force();
  }

  @Override
  public synchronized void rename(Path from, Path to) throws IOException {
    call(from);
    Folder parent = folder(from.getParent());
    Node node = parent.names.get(name(from));
    if (node == null) {
      throw new NoSuchFileException(from.toString());
    }
    if (parent.names.containsKey(name(to))) {
      throw new FileAlreadyExistsException(to.toString());
    }
    parent.change(new Change(name(from), name(to), node));
  }

  @Override
  public synchronized List<String> list(Path path) throws IOException {
    call(path);
    return List.copyOf(folder(path).names.keySet());
  }

  @Override
  public synchronized void delete(Path path) throws IOException {
    Folder parent = folder(path.getParent());
    if (parent.names.get(name(path)) instanceof Folder inner) {
      for (String name : List.copyOf(inner.names.keySet())) {
        call(path.resolve(name));
        inner.change(new Change(name, null, null));
      }
      if (!inner.names.isEmpty()) {
        throw new DirectoryNotEmptyException(path.toString());
      }
    }
    call(path);
    parent.change(new Change(name(path), null, null));
  }
}
