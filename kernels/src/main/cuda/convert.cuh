// Copies elements to another floating-point type, on one GPU (dev.tutti.cuda.element.DeviceCopy).
#pragma once

#include "elements.cuh"

namespace tutti {
namespace convert {

// Four elements, read and written as one access of 8, 16 or twice 16 bytes.
template <class T>
struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) Four {
  T at[4];
};

// Rounded to odd, so that a second rounding, to a shorter type, gives what a single one would.
__device__ __forceinline__ float toOdd(double value) {
  const float below = __double2float_rz(value);
  return double(below) == value ? below : __uint_as_float(__float_as_uint(below) | 1);
}

template <class From, class To>
__device__ __forceinline__ typename Element<To>::Bits one(typename Element<From>::Bits bits) {
  if constexpr (sizeof(bits) == 8 && sizeof(typename Element<To>::Bits) == 2) {
    return Element<To>::narrow(toOdd(Element<From>::widen(bits)));
  } else {
    return Element<To>::narrow(static_cast<typename Element<To>::Acc>(Element<From>::widen(bits)));
  }
}

template <class From, class To>
__device__ __forceinline__ void copy(const void* source, void* target, u64 count) {
  using In = typename Element<From>::Bits;
  using Out = typename Element<To>::Bits;
  const In* const in = static_cast<const In*>(source);
  Out* const out = static_cast<Out*>(target);
  const u64 step = u64(gridDim.x) * blockDim.x;
  const u64 first = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool isAligned = (reinterpret_cast<u64>(source) % alignof(Four<In>) |
                          reinterpret_cast<u64>(target) % alignof(Four<Out>)) == 0;
  const u64 fours = isAligned ? count / 4 : 0;
  for (u64 i = first; i < fours; i += step) {
    const Four<In> before = reinterpret_cast<const Four<In>*>(source)[i];
    Four<Out> after;
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      after.at[k] = one<From, To>(before.at[k]);
    }
    reinterpret_cast<Four<Out>*>(target)[i] = after;
  }
  for (u64 i = 4 * fours + first; i < count; i += step) {
    out[i] = one<From, To>(in[i]);
  }
}

template <class From>
__device__ __forceinline__ void copyTo(u32 to, const void* source, void* target, u64 count) {
  switch (to) {
    case 0:
      copy<From, float>(source, target, count);
      break;
    case 1:
      copy<From, double>(source, target, count);
      break;
    case 2:
      copy<From, Half>(source, target, count);
      break;
    default:
      copy<From, BFloat16>(source, target, count);
      break;
  }
}

}  // namespace convert
}  // namespace tutti

// Types: 0 float32, 1 float64, 2 float16, 3 bfloat16.
extern "C" __global__ void __launch_bounds__(256)
    tutti_convert(const void* source, void* target, unsigned long long count, unsigned int from, unsigned int to) {
  switch (from) {
    case 0:
      tutti::convert::copyTo<float>(to, source, target, count);
      break;
    case 1:
      tutti::convert::copyTo<double>(to, source, target, count);
      break;
    case 2:
      tutti::convert::copyTo<tutti::Half>(to, source, target, count);
      break;
    default:
      tutti::convert::copyTo<tutti::BFloat16>(to, source, target, count);
      break;
  }
}
