package dev.tutti.runtime.group;

import dev.tutti.Codec;
import dev.tutti.DType;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Exchanges objects as bytes: first the lengths, then the bytes, padded where lengths must match.
 */
final class ObjectCollectives {
  private final ProcessGroup group;
  private final Map<Integer, Lock> receiving = new ConcurrentHashMap<>();
  private final Map<Integer, Lock> sending = new ConcurrentHashMap<>();

  ObjectCollectives(ProcessGroup group) {
    this.group = group;
  }

  <T> List<T> allGather(T value, Codec<T> codec) {
    byte[] own = codec.encode(value);
    Tensor lengths = Tensor.allocate(DType.INT64, group.size());
    group.allGatherInto(lengths, Tensor.of((long) own.length));
    long longest = longest(lengths);
    Tensor all = Tensor.allocate(DType.UINT8, group.size(), longest);
    group.allGatherInto(all, padded(own, longest));
    return decoded(
        IntStream.range(0, group.size()).mapToObj(r -> all.select(0, r)), lengths, codec);
  }

  <T> T broadcast(@Nullable T value, int root, Codec<T> codec) {
    boolean isRoot = group.rank() == root;
    byte[] own = isRoot ? codec.encode(required(value)) : new byte[0];
    Tensor length = Tensor.of((long) own.length);
    group.broadcast(length, root);
    long announced = longest(length);
    Tensor data = isRoot ? Tensor.ofUint8(own) : Tensor.allocate(DType.UINT8, announced);
    group.broadcast(data, root);
    return codec.decode(bytes(data, announced));
  }

  <T> List<T> gather(T value, int root, Codec<T> codec) {
    byte[] own = codec.encode(value);
    Tensor lengths = Tensor.allocate(DType.INT64, group.size());
    group.allGatherInto(lengths, Tensor.of((long) own.length));
    long longest = longest(lengths);
    List<Tensor> parts =
        Stream.generate(() -> Tensor.allocate(DType.UINT8, longest))
            .limit(group.rank() == root ? group.size() : 0)
            .toList();
    group.gather(parts, padded(own, longest), root);
    return decoded(parts.stream(), lengths, codec);
  }

  <T> T scatter(List<T> values, int root, Codec<T> codec) {
    Tensor lengths = Tensor.allocate(DType.INT64, group.size());
    List<byte[]> encoded = new ArrayList<>();
    if (group.rank() == root) {
      for (int r = 0; r < group.size(); r++) {
        encoded.add(codec.encode(values.get(r)));
        lengths.setLong(r, (long) encoded.get(r).length);
      }
    }
    group.broadcast(lengths, root);
    long longest = longest(lengths);
    Tensor own = Tensor.allocate(DType.UINT8, longest);
    group.scatter(own, encoded.stream().map(bytes -> padded(bytes, longest)).toList(), root);
    return codec.decode(bytes(own, lengths.getLong(group.rank())));
  }

  <T> void send(T value, int peer, Codec<T> codec) {
    byte[] bytes = codec.encode(value);
    Lock lock = sending.computeIfAbsent(peer, to -> new ReentrantLock());
    lock.lock();
    try {
      group.send(Tensor.of((long) bytes.length), peer);
      group.send(Tensor.ofUint8(bytes), peer);
    } finally {
      lock.unlock();
    }
  }

  <T> T recv(int peer, Codec<T> codec, int maxBytes) {
    if (maxBytes < 0) {
      throw new IllegalArgumentException("maxBytes must not be negative, but is " + maxBytes);
    }
    Tensor length = Tensor.allocate(DType.INT64, 1);
    Lock lock = receiving.computeIfAbsent(peer, from -> new ReentrantLock());
    lock.lock();
    try {
      group.recv(length, peer);
      long announced = length.getLong(0);
      if (announced < 0 || announced > maxBytes) {
        throw new IllegalStateException(
            "recvObject on rank %d: rank %d announced an object of %d bytes, not of 0 to %d; did it call sendObject?"
                .formatted(group.rank(), peer, announced, maxBytes));
      }
      Tensor content = Tensor.allocate(DType.UINT8, announced);
      group.recv(content, peer);
      return codec.decode(bytes(content, announced));
    } finally {
      lock.unlock();
    }
  }

  private static <T> T required(@Nullable T value) {
    if (value == null) {
      throw new IllegalArgumentException("the root's object must not be null");
    }
    return value;
  }

  /** Returns the longest length, after a check of all of them, which come from other ranks. */
  private long longest(Tensor lengths) {
    long most = Math.min(Integer.MAX_VALUE - 8, Runtime.getRuntime().maxMemory());
    long longest = 0;
    for (long i = 0; i < lengths.numel(); i++) {
      long length = lengths.getLong(i);
      if (length < 0 || length > most) {
        throw new IllegalStateException(
            "rank %d: a rank announced an object of %d bytes, not of 0 to %d"
                .formatted(group.rank(), length, most));
      }
      longest = Math.max(longest, length);
    }
    return longest;
  }

  private static <T> List<T> decoded(Stream<Tensor> parts, Tensor lengths, Codec<T> codec) {
    List<T> values = new ArrayList<>();
    parts.forEach(part -> values.add(codec.decode(bytes(part, lengths.getLong(values.size())))));
    return values;
  }

  private static Tensor padded(byte[] bytes, long length) {
    Tensor tensor = Tensor.allocate(DType.UINT8, length);
    MemorySegment.copy(bytes, 0, tensor.segment(), ValueLayout.JAVA_BYTE, 0, bytes.length);
    return tensor;
  }

  private static byte[] bytes(Tensor tensor, long length) {
    return tensor.segment().asSlice(0, length).toArray(ValueLayout.JAVA_BYTE);
  }
}
