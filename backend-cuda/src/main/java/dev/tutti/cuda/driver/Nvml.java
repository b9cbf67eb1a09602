package dev.tutti.cuda.driver;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.tutti.BackendException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;

/** The NVLink queries through {@code libnvidia-ml.so.1}. */
public final class Nvml implements LinkCalls {
  private static final String NAME = "libnvidia-ml.so.1";

  /* NVML constants. */
  private static final int MAX_LINKS = 64;
  private static final int NOT_SUPPORTED = 3;
  private static final int INVALID_ARGUMENT = 2;
  private static final int REMOTE_GPU = 0;
  private static final int REMOTE_SWITCH = 2;
  private static final int PCI_INFO_BYTES = 68;
  private static final int PCI_INFO_BUS_ID = 36;

  /** Creates an object; loads nothing yet. */
  public Nvml() {}

  @Override
  public List<Link> links(String pciBusId) {
    if (!NativeLibraries.isPresent(NAME)) {
      throw new BackendException("the loader cannot find " + NAME);
    }
    try (Arena arena = Arena.ofConfined()) {
      Session session = new Session(arena);
      session.check((int) session.function("nvmlInit_v2").invokeExact(), "nvmlInit");
      try {
        return session.links(pciBusId);
      } finally {
        int ignored = (int) session.function("nvmlShutdown").invokeExact();
      }
    } catch (Throwable e) {
      throw Errors.unexpected(e);
    }
  }

  /** One use of the library. */
  private static final class Session {
    private final Arena arena;
    private final SymbolLookup library;

    Session(Arena arena) {
      this.arena = arena;
      this.library = SymbolLookup.libraryLookup(NAME, Arena.global());
    }

    MethodHandle function(String name, MemoryLayout... parameters) {
      MemorySegment symbol =
          library
              .find(name)
              .orElseThrow(() -> new BackendException(NAME + " has no function " + name));
      return Linker.nativeLinker()
          .downcallHandle(symbol, FunctionDescriptor.of(JAVA_INT, parameters));
    }

    void check(int code, String call) {
      if (code != 0) {
        throw new BackendException(call + " of " + NAME + " failed with code " + code);
      }
    }

    List<Link> links(String pciBusId) throws Throwable {
      MemorySegment cell = arena.allocate(JAVA_LONG);
      MemorySegment busId = arena.allocateFrom(pciBusId);
      check(
          (int)
              function("nvmlDeviceGetHandleByPciBusId_v2", JAVA_LONG, JAVA_LONG)
                  .invokeExact(busId.address(), cell.address()),
          "nvmlDeviceGetHandleByPciBusId of " + pciBusId);
      long device = cell.get(JAVA_LONG, 0);
      MethodHandle state = function("nvmlDeviceGetNvLinkState", JAVA_LONG, JAVA_INT, JAVA_LONG);
      MethodHandle type =
          function("nvmlDeviceGetNvLinkRemoteDeviceType", JAVA_LONG, JAVA_INT, JAVA_LONG);
      List<Link> links = new ArrayList<>();
      for (int link = 0; link < MAX_LINKS; link++) {
        int code = (int) state.invokeExact(device, link, cell.address());
        if (code == NOT_SUPPORTED || code == INVALID_ARGUMENT) {
          continue;
        }
        check(code, "nvmlDeviceGetNvLinkState of link " + link);
        if (cell.get(JAVA_INT, 0) == 0) {
          continue;
        }
        check(
            (int) type.invokeExact(device, link, cell.address()),
            "nvmlDeviceGetNvLinkRemoteDeviceType of link " + link);
        int remote = cell.get(JAVA_INT, 0);
        if (remote == REMOTE_SWITCH) {
          links.add(new Link.ToSwitch());
        } else if (remote == REMOTE_GPU) {
          links.add(new Link.ToDevice(remoteBusId(device, link)));
        }
      }
      return List.copyOf(links);
    }

    private String remoteBusId(long device, int link) throws Throwable {
      MemorySegment info = arena.allocate(PCI_INFO_BYTES, Long.BYTES);
      check(
          (int)
              function("nvmlDeviceGetNvLinkRemotePciInfo_v2", JAVA_LONG, JAVA_INT, JAVA_LONG)
                  .invokeExact(device, link, info.address()),
          "nvmlDeviceGetNvLinkRemotePciInfo of link " + link);
      return info.getString(PCI_INFO_BUS_ID);
    }
  }
}
