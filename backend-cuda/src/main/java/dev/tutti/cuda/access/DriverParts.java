package dev.tutti.cuda.access;

import dev.tutti.cuda.driver.CudaDriver;
import dev.tutti.cuda.driver.LinkCalls;
import dev.tutti.cuda.driver.LinkMatrix;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** The parts of the driver of a process. Any thread may call any method. */
public final class DriverParts {
  private final CudaDriver driver;
  private final LinkCalls links;
  private final OpenBlocks openBlocks = new OpenBlocks();
  private final List<Runnable> sharing = new CopyOnWriteArrayList<>();
  private final Map<Integer, String> writtenLinks = new ConcurrentHashMap<>();

  /** Creates the parts of a driver. */
  public DriverParts(CudaDriver driver, LinkCalls links) {
    this.driver = driver;
    this.links = links;
  }

  /** Returns the driver. */
  public CudaDriver driver() {
    return driver;
  }

  /** Returns the stream blocks that are open. */
  public OpenBlocks openBlocks() {
    return openBlocks;
  }

  /**
   * Returns the actions that give up everything that is shared with other processes and still open.
   */
  public List<Runnable> sharing() {
    return sharing;
  }

  /**
   * Returns the links of a device in the format of {@link LinkMatrix#write}; queries them only
   * once.
   */
  public String links(int device) {
    return writtenLinks.computeIfAbsent(
        device, index -> LinkMatrix.write(driver.devices().pciBusId(index), links));
  }

  /** Describes the driver, the devices, and the links between them, one per line. */
  public List<String> findings() {
    return DeviceLine.findings(driver, links);
  }
}
