// Sums the rows of a sparse tensor whose places are equal: linear places are sorted, stably and 8 bits at a time, and each run of equal ones is added.
// All kernels are of one GPU; the host launches them one behind the other in a stream (dev.tutti.cuda.Coalescing).
#pragma once

#include "elements.cuh"

namespace tutti {

struct Short {};
struct Bool {};

template <>
struct Element<Short> : IntegerElement<short, unsigned short, int, u32> {};

// Its sum is an "or".
template <>
struct Element<Bool> {
  using Bits = unsigned char;
  using Acc = u32;
  static constexpr bool kInteger = true;
  static __device__ __forceinline__ u32 widen(unsigned char bits) { return bits != 0; }
  static __device__ __forceinline__ unsigned char narrow(u32 value) {
    return static_cast<unsigned char>(value);
  }
};

namespace coalesce {

constexpr u32 kThreads = 256;
constexpr u32 kWarps = kThreads / 32;
constexpr u32 kItems = 16;
constexpr u32 kTile = kThreads * kItems;  // Kernels.COALESCE_TILE
constexpr u32 kDigits = 256;
constexpr u32 kScanThreads = 1024;
constexpr u32 kAll = ~0u;

// Runs of up to so many rows are added by one thread a column, in their order; longer ones by a warp, or by a block.
constexpr u32 kShortRun = 32;
constexpr u32 kLongRun = 1024;

__device__ __forceinline__ u32 lanesBelow() {
  u32 mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

// Linear places of entries, whose coordinates are [dims][count]. `outside` gets the least index of a coordinate that is out of its size.
__device__ __forceinline__ void places(const long long* coordinates, u64 count, const long long* sizes, u32 dims,
                                       u64* keys, u64* outside) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    u64 key = 0;
    for (u32 d = 0; d < dims; d++) {
      const u64 size = static_cast<u64>(sizes[d]);
      u64 at = static_cast<u64>(coordinates[d * count + i]);
      if (at >= size) {
        atomicMin(outside, d * count + i);
        at = 0;
      }
      key = key * size + at;
    }
    keys[i] = key;
  }
}

// Coordinates [dims][count] of linear places.
__device__ __forceinline__ void coordinates(const u64* keys, u64 count, const long long* sizes, u32 dims,
                                            long long* out) {
  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    u64 rest = keys[i];
    for (u32 d = dims; d-- > 0;) {
      const u64 size = static_cast<u64>(sizes[d]);
      out[d * count + i] = static_cast<long long>(rest % size);
      rest /= size;
    }
  }
}

// How often each digit is in each tile: counts[digit][tile].
__device__ __forceinline__ void countDigits(const u64* keys, u32 count, u32 shift, u32* counts) {
  __shared__ u32 found[kDigits];
  found[threadIdx.x] = 0;
  __syncthreads();
  const u64 first = u64(blockIdx.x) * kTile;
  for (u32 j = 0; j < kItems; j++) {
    const u64 i = first + j * kThreads + threadIdx.x;
    if (i < count) {
      atomicAdd(&found[keys[i] >> shift & (kDigits - 1)], 1);
    }
  }
  __syncthreads();
  counts[threadIdx.x * gridDim.x + blockIdx.x] = found[threadIdx.x];
}

// What the threads of a block before this one have together; sums: a word for each warp.
__device__ __forceinline__ u32 before(u32 value, u32* sums, u32* total) {
  const u32 lane = threadIdx.x % 32;
  u32 upTo = value;
  for (u32 off = 1; off < 32; off *= 2) {
    const u32 other = __shfl_up_sync(kAll, upTo, off);
    upTo += lane >= off ? other : 0;
  }
  if (lane == 31) {
    sums[threadIdx.x / 32] = upTo;
  }
  __syncthreads();
  u32 earlier = 0;
  u32 all = 0;
  for (u32 w = 0; w < blockDim.x / 32; w++) {
    const u32 sum = sums[w];
    earlier += w < threadIdx.x / 32 ? sum : 0;
    all += sum;
  }
  __syncthreads();
  *total = all;
  return earlier + upTo - value;
}

// Replaces each value by the sum of those before it; one block. The sum of all goes to total, if there is one.
__device__ __forceinline__ void scan(u32* values, u64 count, u64* total) {
  __shared__ u32 sums[kScanThreads / 32];
  u32 carry = 0;
  for (u64 base = 0; base < count; base += kScanThreads * kItems) {
    const u64 first = base + threadIdx.x * kItems;
    u32 own[kItems];
    u32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < kItems; k++) {
      own[k] = first + k < count ? values[first + k] : 0;
      sum += own[k];
    }
    u32 all;
    u32 run = carry + before(sum, sums, &all);
#pragma unroll
    for (u32 k = 0; k < kItems; k++) {
      if (first + k < count) {
        values[first + k] = run;
      }
      run += own[k];
    }
    carry += all;
  }
  if (threadIdx.x == 0 && total != nullptr) {
    *total = carry;
  }
}

// Moves keys, and what is known of them, to where their digit begins; keys of one digit keep their order. Without `rows` a key's row is its index.
__device__ __forceinline__ void scatter(const u64* keys, const u32* rows, u32 count, u32 shift, const u32* begins,
                                        u64* keysOut, u32* rowsOut) {
  __shared__ u32 next[kWarps][kDigits];
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  for (u32 w = 0; w < kWarps; w++) {
    next[w][threadIdx.x] = 0;
  }
  __syncthreads();
  const u64 first = u64(blockIdx.x) * kTile + warp * (32 * kItems) + lane;
  u64 key[kItems];
  u32 rank[kItems];
#pragma unroll
  for (u32 j = 0; j < kItems; j++) {
    const u64 i = first + j * 32;
    const bool isThere = i < count;
    key[j] = isThere ? keys[i] : 0;
    const u32 digit = isThere ? key[j] >> shift & (kDigits - 1) : kDigits;
    const u32 alike = __match_any_sync(kAll, digit);
    const u32 earlier = __popc(alike & lanesBelow());
    rank[j] = isThere ? next[warp][digit] + earlier : 0;
    __syncwarp();
    if (isThere && earlier == 0) {
      next[warp][digit] += __popc(alike);
    }
    __syncwarp();
  }
  __syncthreads();
  u32 begin = begins[threadIdx.x * gridDim.x + blockIdx.x];
  for (u32 w = 0; w < kWarps; w++) {
    const u32 own = next[w][threadIdx.x];
    next[w][threadIdx.x] = begin;
    begin += own;
  }
  __syncthreads();
#pragma unroll
  for (u32 j = 0; j < kItems; j++) {
    const u64 i = first + j * 32;
    if (i < count) {
      const u32 to = next[warp][key[j] >> shift & (kDigits - 1)] + rank[j];
      keysOut[to] = key[j];
      rowsOut[to] = rows == nullptr ? static_cast<u32>(i) : rows[i];
    }
  }
}

__device__ __forceinline__ bool isHead(const u64* keys, u64 i) { return i == 0 || keys[i] != keys[i - 1]; }

// How many runs of equal keys begin in each tile.
__device__ __forceinline__ void countRuns(const u64* keys, u32 count, u32* counts) {
  u32 own = 0;
  const u64 first = u64(blockIdx.x) * kTile;
  for (u32 j = 0; j < kItems; j++) {
    const u64 i = first + j * kThreads + threadIdx.x;
    own += i < count && isHead(keys, i);
  }
  __shared__ u32 sums[kWarps];
  u32 all;
  before(own, sums, &all);
  if (threadIdx.x == 0) {
    counts[blockIdx.x] = all;
  }
}

// Where each run begins, and its key; begins: how many begin before each tile.
__device__ __forceinline__ void runs(const u64* keys, u32 count, const u32* begins, u32* starts, u64* distinct) {
  __shared__ u32 sums[kWarps];
  u32 run = begins[blockIdx.x];
  const u64 first = u64(blockIdx.x) * kTile;
  for (u32 j = 0; j < kItems; j++) {
    const u64 i = first + j * kThreads + threadIdx.x;
    const bool head = i < count && isHead(keys, i);
    u32 all;
    const u32 at = run + before(head, sums, &all);
    if (head) {
      starts[at] = static_cast<u32>(i);
      distinct[at] = keys[i];
    }
    run += all;
  }
}

// How the accumulators of a type are added.
template <class T>
struct Sum {
  using Acc = typename Element<T>::Acc;
  static __device__ __forceinline__ Acc of(Acc a, Acc b) {
    if constexpr (Element<T>::kInteger) {
      using Wrapping = typename Element<T>::Wrapping;
      return static_cast<Acc>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }
};

template <>
struct Sum<Bool> {
  static __device__ __forceinline__ u32 of(u32 a, u32 b) { return a | b; }
};

// The rows of a sparse tensor's values in the order of their places.
template <class T>
struct Rows {
  using E = Element<T>;
  using Bits = typename E::Bits;
  using Acc = typename E::Acc;

  const Bits* values;
  u64 columns;
  const u32* rows;

  __device__ __forceinline__ Bits bits(u64 entry, u64 column) const {
    const u64 row = rows == nullptr ? entry : rows[entry];
    return values[row * columns + column];
  }

  // The sum of every `step`th entry from `first` on; there is one.
  __device__ __forceinline__ Acc sum(u64 first, u64 end, u64 step, u64 column) const {
    constexpr u32 kAhead = 4;
    Acc acc = E::widen(bits(first, column));
    u64 e = first + step;
    for (; e + (kAhead - 1) * step < end; e += kAhead * step) {
      Bits next[kAhead];
#pragma unroll
      for (u32 k = 0; k < kAhead; k++) {
        next[k] = bits(e + k * step, column);
      }
#pragma unroll
      for (u32 k = 0; k < kAhead; k++) {
        acc = Sum<T>::of(acc, E::widen(next[k]));
      }
    }
    for (; e < end; e += step) {
      acc = Sum<T>::of(acc, E::widen(bits(e, column)));
    }
    return acc;
  }
};

// Adds the lanes of a warp that have the same column: those that are a multiple of `width` apart.
template <class T>
__device__ __forceinline__ typename Element<T>::Acc addLanes(typename Element<T>::Acc acc, u32 width) {
  for (u32 off = width; off < 32; off *= 2) {
    acc = Sum<T>::of(acc, __shfl_xor_sync(kAll, acc, off));
  }
  return acc;
}

// Adds one run by `parts` warps, of which this is number `part`; those of a block meet, so all of it has to be here.
template <class T>
__device__ __forceinline__ void addLongRun(const Rows<T>& in, u64 begin, u64 end, u32 part, u32 parts,
                                           typename Element<T>::Bits* out) {
  using E = Element<T>;
  using Acc = typename E::Acc;
  __shared__ Acc partial[kWarps][32];
  const u32 lane = threadIdx.x % 32;
  u32 width = 1;
  while (width < 32 && width < in.columns) {
    width *= 2;
  }
  const u32 groups = 32 / width;
  for (u64 c = lane % width; c - lane % width < in.columns; c += width) {
    Acc acc = {};
    if (c < in.columns) {
      acc = in.sum(begin + part * groups + lane / width, end, u64(groups) * parts, c);
    }
    if (parts > 1) {
      partial[part][lane] = acc;
      __syncthreads();
      for (u32 w = 1; part == 0 && w < parts; w++) {
        acc = Sum<T>::of(acc, partial[w][lane]);
      }
      __syncthreads();
    }
    acc = addLanes<T>(acc, width);
    if (part == 0 && lane < width && c < in.columns) {
      out[c] = E::narrow(acc);
    }
  }
}

// Adds the rows of each run: [runs][columns]. The sum of a short run is that of its rows in their order.
template <class T>
__device__ __forceinline__ void sumRuns(const void* values, u64 columns, const u32* rows, const u32* starts,
                                        const u64* runCount, u64 count, void* out) {
  using E = Element<T>;
  using Bits = typename E::Bits;
  const u64 all = *runCount;
  const Rows<T> in = {static_cast<const Bits*>(values), columns, rows};
  Bits* to = static_cast<Bits*>(out);
  const u64 step = u64(gridDim.x) * kThreads;
  for (u64 q = u64(blockIdx.x) * kThreads + threadIdx.x; q < all * columns; q += step) {
    const u64 run = q / columns;
    const u64 column = q - run * columns;
    const u64 begin = starts[run];
    const u64 end = run + 1 < all ? starts[run + 1] : count;
    if (end - begin == 1) {
      to[q] = in.bits(begin, column);
    } else if (end - begin <= kShortRun) {
      to[q] = E::narrow(in.sum(begin, end, 1, column));
    }
  }
  const u32 warp = threadIdx.x / 32;
  for (u64 first = u64(blockIdx.x) * kWarps; first < all; first += u64(gridDim.x) * kWarps) {
    for (u32 w = 0; w < kWarps && first + w < all; w++) {
      const u64 run = first + w;
      const u64 begin = starts[run];
      const u64 end = run + 1 < all ? starts[run + 1] : count;
      if (end - begin > kLongRun) {
        addLongRun(in, begin, end, warp, kWarps, to + run * columns);
      } else if (end - begin > kShortRun && w == warp) {
        addLongRun(in, begin, end, 0, 1, to + run * columns);
      }
    }
  }
}

}  // namespace coalesce
}  // namespace tutti

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_places(const long long* coordinates, unsigned long long count, const long long* sizes,
                          unsigned int dims, unsigned long long* keys, unsigned long long* outside) {
  tutti::coalesce::places(coordinates, count, sizes, dims, keys, outside);
}

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_coordinates(const unsigned long long* keys, unsigned long long count, const long long* sizes,
                               unsigned int dims, long long* coordinates) {
  tutti::coalesce::coordinates(keys, count, sizes, dims, coordinates);
}

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_digits(const unsigned long long* keys, unsigned int count, unsigned int shift,
                          unsigned int* counts) {
  tutti::coalesce::countDigits(keys, count, shift, counts);
}

extern "C" __global__ void __launch_bounds__(1024)
    tutti_coalesce_scan(unsigned int* values, unsigned long long count, unsigned long long* total) {
  tutti::coalesce::scan(values, count, total);
}

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_scatter(const unsigned long long* keys, const unsigned int* rows, unsigned int count,
                           unsigned int shift, const unsigned int* begins, unsigned long long* keys_out,
                           unsigned int* rows_out) {
  tutti::coalesce::scatter(keys, rows, count, shift, begins, keys_out, rows_out);
}

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_heads(const unsigned long long* keys, unsigned int count, unsigned int* counts) {
  tutti::coalesce::countRuns(keys, count, counts);
}

extern "C" __global__ void __launch_bounds__(256)
    tutti_coalesce_runs(const unsigned long long* keys, unsigned int count, const unsigned int* begins,
                        unsigned int* starts, unsigned long long* distinct) {
  tutti::coalesce::runs(keys, count, begins, starts, distinct);
}

#define TUTTI_COALESCE_SUM(label, type)                                                               \
  extern "C" __global__ void __launch_bounds__(256) tutti_coalesce_sum_##label(                       \
      const void* values, unsigned long long columns, const unsigned int* rows,                       \
      const unsigned int* starts, const unsigned long long* runs, unsigned long long count, void* out) { \
    tutti::coalesce::sumRuns<type>(values, columns, rows, starts, runs, count, out);                  \
  }

TUTTI_COALESCE_SUM(f32, float)
TUTTI_COALESCE_SUM(f64, double)
TUTTI_COALESCE_SUM(f16, tutti::Half)
TUTTI_COALESCE_SUM(bf16, tutti::BFloat16)
TUTTI_COALESCE_SUM(i8, unsigned char)
TUTTI_COALESCE_SUM(i16, tutti::Short)
TUTTI_COALESCE_SUM(i32, int)
TUTTI_COALESCE_SUM(i64, long long)
TUTTI_COALESCE_SUM(bool, tutti::Bool)
