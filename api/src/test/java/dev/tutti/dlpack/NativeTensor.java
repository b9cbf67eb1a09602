package dev.tutti.dlpack;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A DLPack tensor as native code provides it, in both structures: int32 of shape [2, 2] and strides
 * [1, 2] in memory that holds 0, 1, 2, ...
 */
final class NativeTensor implements AutoCloseable {
  final MemorySegment managed;
  final MemorySegment versioned;

  /** The DLTensor in {@link #managed}. */
  final MemorySegment tensor;

  private final Arena arena = Arena.ofShared();
  private final AtomicInteger deletions = new AtomicInteger();

  NativeTensor() {
    MemorySegment data = arena.allocateFrom(JAVA_INT, 0, 1, 2, 3, 4, 5, 6, 7);
    MemorySegment deleter = deleter();
    managed = arena.allocate(64, 8);
    managed.set(ADDRESS, 56, deleter);
    tensor = managed.asSlice(0, 48);
    tensor.set(ADDRESS, 0, data);
    tensor.set(JAVA_INT, 8, 1);
    tensor.set(JAVA_INT, 16, 2);
    tensor.set(JAVA_BYTE, 21, (byte) 32);
    tensor.set(JAVA_SHORT, 22, (short) 1);
    tensor.set(ADDRESS, 24, arena.allocateFrom(JAVA_LONG, 2, 2));
    tensor.set(ADDRESS, 32, arena.allocateFrom(JAVA_LONG, 1, 2));
    versioned = arena.allocate(80, 8);
    versioned.set(JAVA_INT, 0, 1);
    versioned.set(ADDRESS, 16, deleter);
    versioned.asSlice(32).copyFrom(tensor);
  }

  private MemorySegment deleter() {
    try {
      return Linker.nativeLinker()
          .upcallStub(
              MethodHandles.lookup()
                  .bind(this, "delete", MethodType.methodType(void.class, MemorySegment.class)),
              FunctionDescriptor.ofVoid(ADDRESS),
              // The calling thread may still be in the stub when the test is done.
              Arena.global());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(e.getMessage(), e);
    }
  }

  @SuppressWarnings("UnusedMethod") // called through the stub
  private void delete(MemorySegment self) {
    if (self.address() == managed.address() || self.address() == versioned.address()) {
      deletions.incrementAndGet();
    }
  }

  /** Returns how often the deleter was called. */
  int deleted() {
    return deletions.get();
  }

  @Override
  public void close() {
    arena.close();
  }
}
