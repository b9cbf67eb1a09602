package dev.tutti.spi;

import dev.tutti.Incubating;
import dev.tutti.Tensor;
import dev.tutti.TuttiException;
import java.time.Duration;

/**
 * A queue of work on a device, for code that works with any device. Equal objects denote the same
 * queue. All methods may be called from any thread, and none but {@link #await} waits for the
 * device.
 */
@Incubating
public interface DeviceStream {
  /**
   * Makes this stream the calling thread's current stream of its device, and returns the one that
   * was. Which device is the thread's current one does not change (c10: {@code exchangeStream}).
   */
  DeviceStream makeCurrent();

  /**
   * Orders later work in this stream after the work that is now in another one.
   *
   * @param earlier a stream of a device of the same kind
   */
  void waitFor(DeviceStream earlier);

  /**
   * Declares that this stream works on a tensor, so that its memory, once freed, is reused only
   * after the work that is in the stream then.
   *
   * @param tensor a tensor whose memory a {@link DeviceTensors} of the same kind allocated
   */
  void keep(Tensor tensor);

  /**
   * Waits on the host until the work that is now in this stream is done.
   *
   * @param timeout the maximum time to wait
   * @throws TuttiException if the work is not done by then
   */
  void await(Duration timeout);

  /** Returns whether work in this stream is being recorded, to be executed later (a CUDA graph). */
  boolean isCapturing();
}
