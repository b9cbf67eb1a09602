// Copies between a tensor with gaps and one without, on one GPU (dev.tutti.cuda.element.DeviceStridedCopy).
#pragma once

#include "elements.cuh"

namespace tutti {
namespace strided {

// A tensor of up to four sizes, the innermost first; the outermost has what is left. Steps are in bytes.
struct Shape {
  u64 sizes[3];
  u64 steps[4];
};

// Index has 32 bits where all indices fit, as divisions of 64 bits are slow.
template <typename Unit, typename Index>
__device__ __forceinline__ void copy(char* gaps, Unit* dense, Index count, const Shape& shape, bool isToDense) {
  const Index sizes[3] = {Index(shape.sizes[0]), Index(shape.sizes[1]), Index(shape.sizes[2])};
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    Index rest = Index(i);
    u64 offset = 0;
#pragma unroll
    for (u32 d = 0; d < 3; d++) {
      const Index next = rest / sizes[d];
      offset += u64(rest - next * sizes[d]) * shape.steps[d];
      rest = next;
    }
    Unit* at = reinterpret_cast<Unit*>(gaps + offset + u64(rest) * shape.steps[3]);
    if (isToDense) {
      dense[i] = *at;
    } else {
      *at = dense[i];
    }
  }
}

template <typename Unit>
__device__ __forceinline__ void copy(char* gaps, void* dense, u64 count, const Shape& shape, bool isToDense) {
  Unit* units = static_cast<Unit*>(dense);
  if (count >> 32 == 0) {
    copy<Unit, u32>(gaps, units, u32(count), shape, isToDense);
  } else {
    copy<Unit, u64>(gaps, units, count, shape, isToDense);
  }
}

}  // namespace strided
}  // namespace tutti

extern "C" __global__ void __launch_bounds__(256)
    tutti_strided_copy(void* gaps, void* dense, unsigned long long count, unsigned int unit, unsigned int to_dense,
                       unsigned long long size0, unsigned long long size1, unsigned long long size2,
                       unsigned long long step0, unsigned long long step1, unsigned long long step2,
                       unsigned long long step3) {
  const tutti::strided::Shape shape = {{size0, size1, size2}, {step0, step1, step2, step3}};
  char* const bytes = static_cast<char*>(gaps);
  switch (unit) {
    case 1:
      tutti::strided::copy<unsigned char>(bytes, dense, count, shape, to_dense != 0);
      break;
    case 2:
      tutti::strided::copy<unsigned short>(bytes, dense, count, shape, to_dense != 0);
      break;
    case 4:
      tutti::strided::copy<unsigned int>(bytes, dense, count, shape, to_dense != 0);
      break;
    case 8:
      tutti::strided::copy<uint2>(bytes, dense, count, shape, to_dense != 0);
      break;
    default:
      tutti::strided::copy<uint4>(bytes, dense, count, shape, to_dense != 0);
      break;
  }
}
