package dev.tutti.cuda.collective;

import dev.tutti.TuttiException;
import dev.tutti.kernels.ChannelStatus;
import dev.tutti.spi.Operation;
import java.util.concurrent.TimeoutException;

/**
 * The check of how the kernel of a channel ended.
 *
 * @param control the control words of the channel
 * @param rank this rank's number in the group
 * @param ranks the ranks of the channel, as ranks of the group
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record KernelOutcome(ControlWords control, int rank, int[] ranks) implements ChannelEvent.EndCheck {
  @Override
  public boolean isGood(Operation op) {
    int word = control.status();
    if (word != 0 && !op.isDone()) {
      ChannelStatus status = ChannelStatus.of(word);
      int peer = ranks[status.peer()];
      switch (status.outcome()) {
        case TIMED_OUT ->
            op.fail(
                new TimeoutException(
                    "rank %s waited on its device for rank %s, which did not arrive"
                        .formatted(rank, peer)),
                peer);
        default -> op.fail(new TuttiException("rank " + rank + ": the kernel was aborted"), -1);
      }
    }
    return word == 0;
  }
}
