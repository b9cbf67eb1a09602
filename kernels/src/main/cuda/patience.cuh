// How a kernel waits: for a while at full speed, then looking at the clock and at the host's words as well. A look goes over
// PCIe. Many at once take longer than the time between two of them; so few warps have their turn at once: else a kernel
// waits for its looks when its data is there, is late for the next call, and so makes its peers look there, on and on.
#pragma once

#include "memory.cuh"

namespace tutti {

// The lane of this block, and how many lanes all launches of the call have.
__device__ __forceinline__ u32 laneOf(const Channel& channel) { return channel.firstLane + blockIdx.x; }

__device__ __forceinline__ u32 lanesOf(const Channel& channel) {
  return channel.callLanes == 0 ? gridDim.x : channel.callLanes;
}

constexpr u32 kPollsOfTurn = 1024;
constexpr u32 kWarpsOfTurn = 32;

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
    if ((polls & (kPollsOfTurn - 1)) != 0) {
      return false;
    }
    return hasTurn() && look(lane, peer);
  }

  __device__ __forceinline__ bool hasTurn() const {
    const u32 warps = gridDim.x * ((blockDim.x + 31) / 32);
    const u32 more = (warps - 1) / kWarpsOfTurn;
    const u32 turns = more == 0 ? 1 : 2u << (31 - __clz(more));
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    return ((polls / kPollsOfTurn + warp) & (turns - 1)) == 0;
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
