package dev.tutti.cuda.driver;

/** Makes physical memory and addresses for it, each for itself. */
public interface VirtualMemoryCalls {
  /** The size in bytes of a fabric handle. */
  int FABRIC_HANDLE_BYTES = 64;

  /** Says how memory can be handed to other processes. */
  enum Share {
    /** Not at all. */
    NONE(0),
    /** As a file descriptor. */
    POSIX_FD(1),
    /** As 64 bytes that are valid on all hosts of a fabric. */
    FABRIC(8),
    /** In both ways. */
    POSIX_FD_AND_FABRIC(9);

    private final int code;

    Share(int code) {
      this.code = code;
    }

    /** Returns the driver's number. */
    public int code() {
      return code;
    }
  }

  /**
   * Says what memory is wanted.
   *
   * @param device whose
   * @param share how it can be handed on
   * @param rdma whether network cards must reach it
   */
  record Properties(int device, Share share, boolean rdma) {}

  /** Returns what sizes must be a multiple of, in bytes. */
  long granularity(Properties properties);

  /**
   * Makes physical memory.
   *
   * @param bytes a multiple of {@link #granularity}
   * @return its handle
   */
  long create(long bytes, Properties properties);

  /** Gives up a handle; the memory goes when it is mapped and held nowhere. */
  void release(long handle);

  /** Returns a new file descriptor for memory that may have one; the caller closes it. */
  int exportFd(long handle);

  /** Returns the handle of the memory behind a file descriptor, which stays open. */
  long importFd(int fd);

  /** Returns the {@value #FABRIC_HANDLE_BYTES} bytes for memory that may have a fabric handle. */
  byte[] exportFabric(long handle);

  /** Returns the handle of the memory behind a fabric handle. */
  long importFabric(byte[] fabricHandle);

  /** Sets addresses aside. */
  long reserve(long bytes);

  /** Gives addresses back; nothing may be mapped there. */
  void freeAddress(long address, long bytes);

  /** Puts memory behind addresses; {@link #allow} makes it usable. */
  void map(long address, long bytes, long handle);

  /** Takes memory from behind addresses. */
  void unmap(long address, long bytes);

  /** Lets a device read and write what is mapped. */
  void allow(long address, long bytes, int device);
}
