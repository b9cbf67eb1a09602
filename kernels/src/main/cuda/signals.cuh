// Barrier and signals of symmetric memory over pads of 32-bit words: word channel * ranks + sender of the receiver's
// pad. A pad is all zero between uses. A time-out of 0 waits for ever; one that fires writes control[1] and returns.
#pragma once

#include "patience.cuh"

namespace tutti {

__device__ __forceinline__ u32 exchangeWord(u32* word, u32 expected, u32 desired, bool release) {
  u32 found;
  if (release) {
    asm volatile("atom.release.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
  } else {
    asm volatile("atom.acquire.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(found)
                 : "l"(word), "r"(expected), "r"(desired)
                 : "memory");
  }
  return found;
}

__device__ __forceinline__ bool putSignal(u32* word, Patience& patience, u32 channel, u32 peer) {
  while (exchangeWord(word, 0, 1, true) != 0) {
    if (patience.isOver(channel, peer)) {
      return false;
    }
  }
  return true;
}

__device__ __forceinline__ bool waitSignal(u32* word, Patience& patience, u32 channel, u32 peer) {
  while (exchangeWord(word, 1, 0, false) != 1) {
    if (patience.isOver(channel, peer)) {
      return false;
    }
  }
  return true;
}

}  // namespace tutti

extern "C" __global__ void __launch_bounds__(32)
    tutti_put_signal(unsigned* word, unsigned* control, unsigned long long timeout_ms) {
  if (threadIdx.x == 0) {
    tutti::Patience patience(control, timeout_ms * 1000000);
    tutti::putSignal(word, patience, 0, 0);
  }
}

extern "C" __global__ void __launch_bounds__(32)
    tutti_wait_signal(unsigned* word, unsigned* control, unsigned long long timeout_ms) {
  if (threadIdx.x == 0) {
    tutti::Patience patience(control, timeout_ms * 1000000);
    tutti::waitSignal(word, patience, 0, 0);
  }
}

extern "C" __global__ void __launch_bounds__(32)
    tutti_signal_barrier(const __grid_constant__ tutti::SignalPads pads, unsigned channel,
                         unsigned rank, unsigned ranks, unsigned* control,
                         unsigned long long timeout_ms) {
  const unsigned peer = threadIdx.x;
  if (peer < ranks && peer != rank) {
    tutti::Patience patience(control, timeout_ms * 1000000);
    if (tutti::putSignal(pads.pads[peer] + channel * ranks + rank, patience, channel, peer)) {
      tutti::waitSignal(pads.pads[rank] + channel * ranks + peer, patience, channel, peer);
    }
  }
}
