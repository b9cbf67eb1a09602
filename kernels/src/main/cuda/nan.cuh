// Finds the first NaN of a tensor on one GPU (dev.tutti.cuda.element.DeviceNanSearch).
#pragma once

#include "memory.cuh"

namespace tutti {
namespace nan {

// The bits of a NaN, in any type: (bits ^ flip) & mask is above limit.
struct Pattern {
  u64 flip;
  u64 mask;
  u64 limit;
};

template <class Bits>
__device__ __forceinline__ bool matches(Bits bits, const Pattern& pattern) {
  return ((bits ^ Bits(pattern.flip)) & Bits(pattern.mask)) > Bits(pattern.limit);
}

template <class Bits>
struct alignas(16) Vector {
  static constexpr u32 kCount = 16 / sizeof(Bits);
  Bits at[kCount];
};

// A thread stops at the first NaN that it sees, since its indices grow.
template <class Bits>
__device__ __forceinline__ void find(const void* data, u64 count, const Pattern& pattern, u64* first) {
  constexpr u32 kCount = Vector<Bits>::kCount;
  const Bits* const all = static_cast<const Bits*>(data);
  const u64 step = u64(gridDim.x) * blockDim.x;
  const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  const u64 odd = (0 - reinterpret_cast<u64>(data)) % 16 / sizeof(Bits);
  const u64 head = odd < count ? odd : count;
  const Vector<Bits>* const vectors = reinterpret_cast<const Vector<Bits>*>(all + head);
  const u64 whole = (count - head) / kCount;
  u64 found = ~u64(0);
  for (u64 v = thread; v < whole && found == ~u64(0); v += step) {
    const Vector<Bits> vector = vectors[v];
#pragma unroll
    for (u32 k = kCount; k-- > 0;) {
      found = matches(vector.at[k], pattern) ? head + v * kCount + k : found;
    }
  }
  const u64 tail = head + whole * kCount;
  if (thread < head && matches(all[thread], pattern)) {
    found = thread;
  }
  if (tail + thread < count && matches(all[tail + thread], pattern) && tail + thread < found) {
    found = tail + thread;
  }
  if (found != ~u64(0)) {
    atomicMin(first, found);
  }
}

}  // namespace nan
}  // namespace tutti

// Unit is the size of an element in bytes. First holds all ones before, and still does where there is no NaN.
extern "C" __global__ void __launch_bounds__(256)
    tutti_first_nan(const void* data, unsigned long long count, unsigned int unit, unsigned long long flip,
                    unsigned long long mask, unsigned long long limit, void* first) {
  const tutti::nan::Pattern pattern = {flip, mask, limit};
  tutti::u64* const index = static_cast<tutti::u64*>(first);
  switch (unit) {
    case 1:
      tutti::nan::find<unsigned char>(data, count, pattern, index);
      break;
    case 2:
      tutti::nan::find<unsigned short>(data, count, pattern, index);
      break;
    case 4:
      tutti::nan::find<tutti::u32>(data, count, pattern, index);
      break;
    default:
      tutti::nan::find<tutti::u64>(data, count, pattern, index);
      break;
  }
}
