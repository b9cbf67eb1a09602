package dev.tutti.cuda.driver;

/** The driver calls that create physical memory and reserve addresses for it, separately. */
public interface VirtualMemoryCalls {
  /** The size in bytes of a fabric handle. */
  int FABRIC_HANDLE_BYTES = 64;

  /** How memory can be shared with other processes. */
  enum Share {
    /** Not at all. */
    NONE(0),
    /** As a file descriptor. */
    POSIX_FD(1),
    /** As 64 bytes that are valid on all hosts of a fabric. */
    FABRIC(8),
    /** As both. */
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
   * The properties of the wanted memory.
   *
   * @param device the device that holds the memory
   * @param share how the memory can be shared
   * @param rdma whether network cards must be able to access it
   */
  record Properties(int device, Share share, boolean rdma) {}

  /** Returns the granularity in bytes: all sizes must be multiples of it. */
  long granularity(Properties properties);

  /**
   * Allocates physical memory.
   *
   * @param bytes a multiple of {@link #granularity}
   * @return the memory's handle
   */
  long create(long bytes, Properties properties);

  /** Releases a handle; the memory is freed once no mapping and no other handle holds it. */
  void release(long handle);

  /**
   * Returns a new file descriptor for memory that can be shared as one; the caller must close it.
   */
  int exportFd(long handle);

  /** Returns a handle for the memory behind a file descriptor, which stays open. */
  long importFd(int fd);

  /**
   * Returns the {@value #FABRIC_HANDLE_BYTES}-byte fabric handle of memory that can be shared as
   * one.
   */
  byte[] exportFabric(long handle);

  /** Returns a handle for the memory behind a fabric handle. */
  long importFabric(byte[] fabricHandle);

  /** Reserves an address range. */
  long reserve(long bytes);

  /** Frees an address range; nothing may be mapped there. */
  void freeAddress(long address, long bytes);

  /** Maps memory at an address; {@link #allow} makes it accessible. */
  void map(long address, long bytes, long handle);

  /** Unmaps the memory at an address. */
  void unmap(long address, long bytes);

  /** Lets a device read and write the mapped memory. */
  void allow(long address, long bytes, int device);
}
