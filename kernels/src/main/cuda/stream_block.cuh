// Holds a stream until the host says so. comm[0]: abort flag, written by the host; comm[1]: status, written here.
#pragma once

#include "memory.cuh"

extern "C" __global__ void __launch_bounds__(1, 1)
    tutti_stream_block(int* comm, unsigned long long timeout_ms) {
  using namespace tutti;
  u32* words = reinterpret_cast<u32*>(comm);
  storeRelease(words + 1, kRunning);
  const u64 started = nanoTime();
  const u64 timeoutNs = timeout_ms > ~0ull / 1000000 ? ~0ull : timeout_ms * 1000000;
  while (true) {
    if (loadAcquire(words) == 1) {
      storeRelease(words + 1, kAborted);
      return;
    }
    if (timeout_ms > 0 && nanoTime() - started > timeoutNs) {
      storeRelease(words + 1, kTimedOut);
      return;
    }
    __nanosleep(1000000);
  }
}
