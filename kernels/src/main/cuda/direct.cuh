// All-reduce (SUM, AVG) in place in symmetric memory: each rank reads its part of all buffers and writes it to all. Addresses and
// lengths are multiples of 16 bytes.
#pragma once

#include "barrier.cuh"
#include "elements.cuh"

namespace tutti {

template <class T>
__device__ __forceinline__ void reduceDirectly(const Channel& channel, const DirectCall& call) {
  constexpr u32 kUnroll = 2;
  const u32 lane = blockIdx.x;
  LaneState* state = channel.state + lane;
  const u32 entered = state->barriers;
  if (!laneBarrier(channel, lane, entered + 1, call.timeoutNs)) {
    return;
  }
  const u64 vectors = call.bytes / 16;
  const u64 part = (vectors + channel.ranks - 1) / channel.ranks;
  const u64 begin = part * channel.rank;
  const u64 end = begin + part < vectors ? begin + part : vectors;
  const u64 stride = u64(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (u64 i = begin + u64(lane) * blockDim.x + threadIdx.x; i < end; i += kUnroll * stride) {
    Words<4> all[kUnroll][kMaxRanks];
#pragma unroll
    for (u32 u = 0; u < kUnroll; u++) {
#pragma unroll
      for (u32 r = 0; r < kMaxRanks; r++) {
        if (r < channel.ranks && i + u * stride < end) {
          all[u][r] = wordsOf(reinterpret_cast<const uint4*>(call.buffers[r])[i + u * stride]);
        }
      }
    }
#pragma unroll
    for (u32 u = 0; u < kUnroll; u++) {
      if (i + u * stride < end) {
        const Words<4> result = foldAll<T, true>(all[u], channel.ranks, call.op);
        u32 to = channel.rank;
#pragma unroll
        for (u32 step = 0; step < kMaxRanks; step++) {
          if (step < channel.ranks) {
            reinterpret_cast<uint4*>(call.buffers[to])[i + u * stride] = vectorOf(result);
            to = to + 1 == channel.ranks ? 0 : to + 1;
          }
        }
      }
    }
  }
  if (laneBarrier(channel, lane, entered + 2, call.timeoutNs) && threadIdx.x == 0) {
    state->barriers = entered + 2;
  }
}

}  // namespace tutti
