package dev.tutti.dlpack;

import static java.lang.foreign.ValueLayout.ADDRESS;

import dev.tutti.Tensor;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.Reference;
import java.lang.ref.WeakReference;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** The registry of tensors exported to native code, which also calls and implements deleters. */
public final class DlpackExports {
  private static final System.Logger LOG = System.getLogger(DlpackExports.class.getName());

  /** The exported tensors, by the address of their structure, until their deleter runs. */
  private static final ConcurrentHashMap<Long, Exported> EXPORTED = new ConcurrentHashMap<>();

  private record Exported(Arena arena, Tensor tensor) {}

  /** A holder of everything that needs the native linker, loaded on first use. */
  private static final class Native {
    private static final FunctionDescriptor DELETER = FunctionDescriptor.ofVoid(ADDRESS);

    static final MethodHandle CALL_DELETER = Linker.nativeLinker().downcallHandle(DELETER);

    static final MemorySegment RELEASE;

    /*
     * The JDK never frees the stub, so it must not hold this class's loader: it consists of the
     * JDK's methods, refers weakly to the method that it calls, and holds the exported tensors.
     */
    private static final Consumer<MemorySegment> RELEASER = DlpackExports::release;

    static {
      try {
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        MethodHandle accept =
            lookup.findVirtual(
                Consumer.class, "accept", MethodType.methodType(void.class, Object.class));
        MethodHandle releaser =
            lookup
                .findVirtual(Reference.class, "get", MethodType.methodType(Object.class))
                .bindTo(new WeakReference<>(RELEASER))
                .asType(MethodType.methodType(Consumer.class));
        MethodHandle holding =
            MethodHandles.dropArguments(
                MethodHandles.foldArguments(accept, releaser), 1, ConcurrentHashMap.class);
        MethodHandle release =
            MethodHandles.insertArguments(holding, 1, EXPORTED)
                .asType(MethodType.methodType(void.class, MemorySegment.class));
        RELEASE = Linker.nativeLinker().upcallStub(release, DELETER, Arena.global());
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }
  }

  private DlpackExports() {}

  /**
   * Allocates a structure, and keeps it and its tensor until the deleter runs.
   *
   * @param tensor the tensor that the structure describes
   * @param layout the layout of the structure
   * @param writer fills in the structure, given its memory and an arena for the data that it points
   *     to
   * @return the address of the structure
   */
  public static MemorySegment export(
      Tensor tensor, StructLayout layout, BiConsumer<MemorySegment, Arena> writer) {
    Arena arena = Arena.ofShared();
    try {
      MemorySegment managed = arena.allocate(layout);
      writer.accept(managed, arena);
      EXPORTED.put(managed.address(), new Exported(arena, tensor));
      // Without the arena's scope: a call that takes this pointer may call the deleter, which could
      // not close an arena that the call keeps open.
      return MemorySegment.ofAddress(managed.address()).reinterpret(layout.byteSize());
    } catch (RuntimeException | LinkageError e) {
      arena.close();
      throw e;
    }
  }

  /** Returns whether a structure is exported and its deleter has not run yet. */
  static boolean isExported(MemorySegment managed) {
    return EXPORTED.containsKey(managed.address());
  }

  /** Returns the deleter of exported structures, which is a native function. */
  public static MemorySegment deleter() {
    return Native.RELEASE;
  }

  /** Frees an exported tensor. Native code calls this method, so it throws nothing. */
  private static void release(MemorySegment managed) {
    try {
      Exported exported = EXPORTED.remove(managed.address());
      if (exported == null) {
        LOG.log(Level.WARNING, "the deleter of a DLPack tensor was called twice");
      } else {
        exported.arena.close();
      }
    } catch (Throwable t) {
      LOG.log(Level.WARNING, "a DLPack tensor could not be freed", t);
    }
  }

  /**
   * Calls the deleter of a structure that came from native code.
   *
   * @param deleter the deleter, or a null pointer
   * @param managed the structure to pass to it
   */
  public static void delete(MemorySegment deleter, MemorySegment managed) {
    if (deleter.address() == 0) {
      return;
    }
    try {
      Native.CALL_DELETER.invokeExact(deleter, managed);
    } catch (Throwable t) {
      throw new IllegalStateException("the deleter of a DLPack tensor cannot be called", t);
    }
  }
}
