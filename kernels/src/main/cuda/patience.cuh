// How a kernel waits: for a while at full speed, then looking at the clock and at the host's abort word as well.
#pragma once

#include "memory.cuh"

namespace tutti {

struct Patience {
  u32* control;
  u64 timeoutNs;
  u64 started = 0;
  u32 polls = 0;

  __device__ __forceinline__ Patience(u32* control, u64 timeoutNs)
      : control(control), timeoutNs(timeoutNs) {}

  // Call after each poll that found nothing. The first status that is written ends all other waits of the channel.
  __device__ __forceinline__ bool isOver(u32 lane, u32 peer) {
    polls++;
    if ((polls & 1023) != 0) {
      return false;
    }
    return look(lane, peer);
  }

  __device__ bool look(u32 lane, u32 peer) {
    if (loadRelaxed(control + 1) != kOk) {
      return true;
    }
    if (loadRelaxed(control) != 0) {
      end(kAborted, lane, peer);
      return true;
    }
    const u64 now = nanoTime();
    if (started == 0) {
      started = now;
    } else if (timeoutNs != 0 && now - started > timeoutNs) {
      end(kTimedOut, lane, peer);
      return true;
    }
    return false;
  }

  __device__ void end(u32 status, u32 lane, u32 peer) {
    storeRelease(control + 1, status | peer << 8 | lane << 16);
  }
};

// Waits until a counter that a peer writes has reached a value; counters wrap.
__device__ __forceinline__ bool awaitFlag(
    const u32* flag, u32 value, Patience& patience, u32 lane, u32 peer) {
  while (static_cast<int>(loadAcquire(flag) - value) < 0) {
    if (patience.isOver(lane, peer)) {
      return false;
    }
  }
  return true;
}

}  // namespace tutti
