// The sum of parts that copy engines brought to one GPU (dev.tutti.cuda.collective.CopiedAllReduce); nothing here waits.
#pragma once

#include "elements.cuh"

namespace tutti {

constexpr u32 kAddThreads = 256;
constexpr u32 kAddUnroll = 2;

// kMost: the most ranks, 4 or 8.
template <class T, u32 kMost>
__device__ __forceinline__ void addPartsOf(const ReduceCall& call, u32 ranks) {
  using R = Range<Fold<T, true, 4>::kSize>;
  const u64 vectors = (call.bytes + 15) / 16;
  const u64 step = u64(gridDim.x) * kAddThreads;
#pragma unroll 1
  for (u64 begin = u64(blockIdx.x) * kAddThreads + threadIdx.x; begin < vectors; begin += kAddUnroll * step) {
    Words<4> all[kAddUnroll][kMost];
#pragma unroll
    for (u32 u = 0; u < kAddUnroll; u++) {
      const u64 i = begin + u * step;
#pragma unroll
      for (u32 r = 0; r < kMost; r++) {
        if (r < ranks && i < vectors) {
          const char* part = reinterpret_cast<const char*>(call.shared[r]);
          all[u][r] = wordsOf(16 * i + 16 <= call.bytes
                                  ? __ldcg(reinterpret_cast<const uint4*>(part) + i)
                                  : R(part, call.bytes).load16(16 * i));
        }
      }
    }
#pragma unroll
    for (u32 u = 0; u < kAddUnroll; u++) {
      const u64 i = begin + u * step;
      if (i < vectors) {
        R(call.out, call.bytes).store16(16 * i, vectorOf(foldAll<T, true>(all[u], ranks, call.op)));
      }
    }
  }
}

// Bit r of sources: shared[r] is where rank r's part is. in: null, or a word of the host that counts the calls.
template <class T>
__device__ __forceinline__ void addParts(const ReduceCall& call) {
  if (call.in != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
    u32* const count = reinterpret_cast<u32*>(const_cast<char*>(call.in));
    storeRelaxed(count, loadRelaxed(count) + 1);
  }
  const u32 ranks = __popc(call.sources);
  if (ranks <= 4) {
    addPartsOf<T, 4>(call, ranks);
  } else {
    addPartsOf<T, 8>(call, ranks);
  }
}

}  // namespace tutti
