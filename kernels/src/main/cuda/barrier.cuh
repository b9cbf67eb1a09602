// Barriers of a channel: one lane of all ranks, by counters.
#pragma once

#include "patience.cuh"

namespace tutti {

// Called by all threads of a block. Before: what they wrote is visible to the peers' blocks of this lane after theirs.
__device__ __forceinline__ bool laneBarrier(
    const Channel& channel, u32 lane, u32 count, u64 timeoutNs) {
  __syncthreads();
  const u32 peer = threadIdx.x;
  bool failed = false;
  if (peer < channel.ranks && peer != channel.rank) {
    storeRelease(
        reinterpret_cast<u32*>(
            channel.areas[peer] + flagOffset(channel, kBarrier, lane, channel.rank)),
        count);
    Patience patience(channel.control, timeoutNs);
    const u32* mine = reinterpret_cast<const u32*>(
        channel.areas[channel.rank] + flagOffset(channel, kBarrier, lane, peer));
    failed = !awaitFlag(mine, count, patience, lane, peer);
  }
  return __syncthreads_or(failed) == 0;
}

}  // namespace tutti

extern "C" __global__ void __launch_bounds__(32)
    tutti_barrier(const __grid_constant__ tutti::Channel channel, unsigned long long timeout_ns) {
  const unsigned lane = tutti::laneOf(channel);
  tutti::LaneState* state = channel.state + lane;
  const unsigned count = state->barriers + 1;
  if (tutti::laneBarrier(channel, lane, count, timeout_ns) && threadIdx.x == 0) {
    state->barriers = count;
  }
}
