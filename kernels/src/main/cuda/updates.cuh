// Steps of optimizers on one GPU (dev.tutti.cuda.element.DeviceUpdates).
#pragma once

#include "elements.cuh"

namespace tutti {
namespace updates {

// What an optimizer keeps on its device, so that a step needs nothing of the host: dev.tutti.kernels.UpdateKernels.
struct Control {
  double squares;
  double rate;
  double steps;
  double scale;
  double goodSteps;
  double factor;
  double skips;
  double norm;
  double numbers[3];
  double maxNorm;
  double growth;
  double backoff;
  double interval;
  double checks;
  double isSgd;
  double settings[4];
};

constexpr u32 kThreads = 256;

// Added in an order that depends on the size alone.
__device__ __forceinline__ double sumOfBlock(double mine) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = mine;
  __syncthreads();
#pragma unroll
  for (u32 half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
  }
  return sums[0];
}

template <class T>
__device__ __forceinline__ double squares(const void* data, u64 count) {
  const typename Element<T>::Bits* const all = static_cast<const typename Element<T>::Bits*>(data);
  double sum = 0;
  for (u64 i = u64(blockIdx.x) * kThreads + threadIdx.x; i < count; i += u64(gridDim.x) * kThreads) {
    const double value = Element<T>::widen(all[i]);
    sum += value * value;
  }
  return sum;
}

__device__ __forceinline__ void prepare(Control& c) {
  double factor = 1 / c.scale;
  bool isBad = false;
  if (c.checks != 0) {
    // Infinite or NaN if any gradient is.
    isBad = !(c.squares <= 1.7976931348623157e308);
    c.norm = sqrt(c.squares) * factor;
    if (c.maxNorm > 0 && !isBad) {
      factor *= fmin(1.0, c.maxNorm / (c.norm + 1e-6));
    }
  }
  if (c.interval > 0) {
    c.goodSteps = isBad ? 0 : c.goodSteps + 1;
    if (isBad) {
      c.scale *= c.backoff;
    } else if (c.goodSteps >= c.interval) {
      c.scale = c.scale * c.growth <= 3.4028234663852886e38 ? c.scale * c.growth : c.scale;
      c.goodSteps = 0;
    }
  }
  c.skips = isBad;
  c.factor = factor;
  if (isBad) {
    return;
  }
  c.steps += 1;
  if (c.isSgd != 0) {
    c.numbers[0] = c.steps == 1 ? 0 : c.settings[0];
    c.numbers[1] = c.steps == 1 ? 1 : 1 - c.settings[1];
    c.numbers[2] = c.rate;
  } else {
    c.numbers[0] = 1 - c.rate * c.settings[3];
    c.numbers[1] = c.rate / (1 - pow(c.settings[0], c.steps));
    c.numbers[2] = sqrt(1 - pow(c.settings[1], c.steps));
  }
}

// Four elements of T as floats, one access each of 8 or 16 bytes.
template <class T>
struct alignas(4 * sizeof(typename Element<T>::Bits)) Four {
  typename Element<T>::Bits at[4];
};

template <class T>
__device__ __forceinline__ void load(const void* data, u64 i, u32 n, float (&to)[4]) {
  using Bits = typename Element<T>::Bits;
  const Bits* const all = static_cast<const Bits*>(data) + i;
  if (n == 4) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(all);
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      to[k] = Element<T>::widen(four.at[k]);
    }
  } else {
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      to[k] = k < n ? Element<T>::widen(all[k]) : 0;
    }
  }
}

template <class T>
__device__ __forceinline__ void store(void* data, u64 i, u32 n, const float (&from)[4]) {
  using Bits = typename Element<T>::Bits;
  Bits* const all = static_cast<Bits*>(data) + i;
  if (n == 4) {
    Four<T> four;
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      four.at[k] = Element<T>::narrow(from[k]);
    }
    *reinterpret_cast<Four<T>*>(all) = four;
  } else {
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      if (k < n) {
        all[k] = Element<T>::narrow(from[k]);
      }
    }
  }
}

__device__ __forceinline__ void loadAny(u32 type, const void* data, u64 i, u32 n, float (&to)[4]) {
  if (type == 0) {
    load<float>(data, i, n, to);
  } else if (type == 2) {
    load<Half>(data, i, n, to);
  } else {
    load<BFloat16>(data, i, n, to);
  }
}

__device__ __forceinline__ void storeAny(u32 type, void* data, u64 i, u32 n, const float (&from)[4]) {
  if (type == 0) {
    store<float>(data, i, n, from);
  } else if (type == 2) {
    store<Half>(data, i, n, from);
  } else {
    store<BFloat16>(data, i, n, from);
  }
}

struct Arrays {
  void* parameters;
  void* copy;
  const void* gradients;
  void* first;
  void* second;
  u64 count;
  u32 gradientType;
  u32 copyType;
};

// Whether four elements of each array are one access.
__device__ __forceinline__ bool isAligned(const Arrays& a) {
  const u64 gradient = a.gradientType == 0 ? 16 : 8;
  const u64 copy = a.copyType == 0 ? 16 : 8;
  return ((reinterpret_cast<u64>(a.parameters) | reinterpret_cast<u64>(a.first) | reinterpret_cast<u64>(a.second)) % 16 |
          reinterpret_cast<u64>(a.gradients) % gradient | reinterpret_cast<u64>(a.copy) % copy) == 0;
}

template <class Step>
__device__ __forceinline__ void each(const Arrays& a, bool skips, const Step& step) {
  const u64 threads = u64(gridDim.x) * blockDim.x;
  const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  const u32 width = isAligned(a) ? 4 : 1;
  for (u64 i = thread * width; i < a.count; i += threads * width) {
    const u32 n = a.count - i < width ? u32(a.count - i) : width;
    float p[4];
    load<float>(a.parameters, i, n, p);
    if (!skips) {
      float g[4];
      float first[4] = {};
      float second[4] = {};
      loadAny(a.gradientType, a.gradients, i, n, g);
      if (a.first != nullptr) {
        load<float>(a.first, i, n, first);
      }
      if (a.second != nullptr) {
        load<float>(a.second, i, n, second);
      }
#pragma unroll
      for (u32 k = 0; k < 4; k++) {
        step(p[k], g[k], first[k], second[k]);
      }
      store<float>(a.parameters, i, n, p);
      if (a.first != nullptr) {
        store<float>(a.first, i, n, first);
      }
      if (a.second != nullptr) {
        store<float>(a.second, i, n, second);
      }
    }
    if (a.copy != nullptr) {
      storeAny(a.copyType, a.copy, i, n, p);
    }
  }
}

__device__ __forceinline__ void adamW(const Arrays& a, const Control& c) {
  const float factor = c.factor;
  const float left = c.numbers[0];
  const float size = c.numbers[1];
  const float root = c.numbers[2];
  const float share1 = 1 - c.settings[0];
  const float kept2 = c.settings[1];
  const float share2 = 1 - c.settings[1];
  const float epsilon = c.settings[2];
  each(a, c.skips != 0, [=](float& p, float gradient, float& m, float& v) {
    const float g = gradient * factor;
    m += (g - m) * share1;
    v = kept2 * v + share2 * g * g;
    p = p * left - size * (m / (sqrtf(v) / root + epsilon));
  });
}

__device__ __forceinline__ void sgd(const Arrays& a, const Control& c) {
  const float factor = c.factor;
  const float kept = c.numbers[0];
  const float added = c.numbers[1];
  const float rate = c.numbers[2];
  const float momentum = c.settings[0];
  const float decay = c.settings[3];
  const bool isNesterov = c.settings[2] != 0;
  each(a, c.skips != 0, [=](float& p, float gradient, float& velocity, float&) {
    const float g = gradient * factor + decay * p;
    velocity = momentum == 0 ? g : kept * velocity + added * g;
    p -= rate * (isNesterov ? g + momentum * velocity : velocity);
  });
}

}  // namespace updates
}  // namespace tutti

// Types: 0 float32, 2 float16, 3 bfloat16. One partial sum for each block.
extern "C" __global__ void __launch_bounds__(256)
    tutti_squares(const void* data, unsigned long long count, unsigned int type, void* partials) {
  using namespace tutti;
  const double mine = type == 0   ? updates::squares<float>(data, count)
                      : type == 2 ? updates::squares<Half>(data, count)
                                  : updates::squares<BFloat16>(data, count);
  const double sum = updates::sumOfBlock(mine);
  if (threadIdx.x == 0) {
    static_cast<double*>(partials)[blockIdx.x] = sum;
  }
}

// One block.
extern "C" __global__ void __launch_bounds__(256)
    tutti_add_squares(const void* partials, unsigned long long count, void* control) {
  double mine = 0;
  for (tutti::u64 i = threadIdx.x; i < count; i += tutti::updates::kThreads) {
    mine += static_cast<const double*>(partials)[i];
  }
  const double sum = tutti::updates::sumOfBlock(mine);
  if (threadIdx.x == 0) {
    static_cast<tutti::updates::Control*>(control)->squares = sum;
  }
}

// One thread.
extern "C" __global__ void __launch_bounds__(1) tutti_prepare_update(void* control) {
  tutti::updates::prepare(*static_cast<tutti::updates::Control*>(control));
}

// Parameters are float32; where they are a master copy, "copy" is the address of the rounded ones. State that is not kept
// has the address 0.
extern "C" __global__ void __launch_bounds__(256)
    tutti_update(void* parameters, void* copy, const void* gradients, void* first, void* second, unsigned long long count,
                 unsigned int gradient_type, unsigned int copy_type, const void* control) {
  const tutti::updates::Arrays arrays = {parameters, copy, gradients, first, second, count, gradient_type, copy_type};
  const tutti::updates::Control& c = *static_cast<const tutti::updates::Control*>(control);
  if (c.isSgd != 0) {
    tutti::updates::sgd(arrays, c);
  } else {
    tutti::updates::adamW(arrays, c);
  }
}
