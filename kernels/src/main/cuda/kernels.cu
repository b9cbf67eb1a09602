// All kernels of Tutti in one image; the table below says which exist. Names: tutti_<what>_<type>_<sum|other>.
#include "add_parts.cuh"
#include "barrier.cuh"
#include "chunks.cuh"
#include "coalesce.cuh"
#include "convert.cuh"
#include "exchange.cuh"
#include "nan.cuh"
#include "packets.cuh"
#include "signals.cuh"
#include "stream_block.cuh"
#include "strided.cuh"
#include "updates.cuh"

#define TUTTI_REDUCE(what, label, ops, run)                                           \
  extern "C" __global__ void __launch_bounds__(512)                                   \
      tutti_##what##_##label##_##ops(const __grid_constant__ tutti::Channel channel,  \
                                     const __grid_constant__ tutti::ReduceCall call) { \
    run;                                                                              \
  }

// Small sums of real numbers are what is common; other reductions to unequal parts go in chunks at all sizes.
#define TUTTI_UNEQUAL_TWO_SHOT(label, type) \
  TUTTI_REDUCE(unequal_two_shot, label, sum, (tutti::reduceTwoShot<type, true, true>(channel, call)))

// The sums that are tuned, and that of bytes, which broadcasts.
#define TUTTI_CHUNKS(label, type) \
  TUTTI_REDUCE(chunks, label, sum, (tutti::reduceByChunks<type, true, false, false>(channel, call))) \
  TUTTI_REDUCE(some_chunks, label, sum, (tutti::reduceByChunks<type, true, false, true>(channel, call)))

#define TUTTI_OTHER_CHUNKS(label, type, ops, adds) \
  TUTTI_REDUCE(chunks, label, ops, (tutti::reduceByChunks<type, adds, false, true>(channel, call)))

#define TUTTI_REDUCE_OPS(label, type, ops, adds)                                         \
  TUTTI_REDUCE(one_shot, label, ops, (tutti::reduceOneShot<type, adds>(channel, call))) \
  TUTTI_REDUCE(two_shot, label, ops, (tutti::reduceTwoShot<type, adds, false>(channel, call))) \
  TUTTI_REDUCE(unequal_chunks, label, ops, (tutti::reduceByChunks<type, adds, true, true>(channel, call)))

#define TUTTI_REDUCE_TYPE(label, type)     \
  TUTTI_REDUCE_OPS(label, type, sum, true) \
  TUTTI_REDUCE_OPS(label, type, other, false) \
  TUTTI_OTHER_CHUNKS(label, type, other, false)

TUTTI_REDUCE_TYPE(f32, float)
TUTTI_REDUCE_TYPE(f64, double)
TUTTI_REDUCE_TYPE(f16, tutti::Half)
TUTTI_REDUCE_TYPE(bf16, tutti::BFloat16)
TUTTI_REDUCE_TYPE(i8, signed char)
TUTTI_REDUCE_TYPE(u8, unsigned char)
TUTTI_REDUCE_TYPE(i32, int)
TUTTI_REDUCE_TYPE(i64, long long)

TUTTI_CHUNKS(f32, float)
TUTTI_CHUNKS(f64, double)
TUTTI_CHUNKS(f16, tutti::Half)
TUTTI_CHUNKS(bf16, tutti::BFloat16)
TUTTI_CHUNKS(u8, unsigned char)
TUTTI_OTHER_CHUNKS(i8, signed char, sum, true)
TUTTI_OTHER_CHUNKS(i32, int, sum, true)
TUTTI_OTHER_CHUNKS(i64, long long, sum, true)

TUTTI_UNEQUAL_TWO_SHOT(f32, float)
TUTTI_UNEQUAL_TWO_SHOT(f64, double)
TUTTI_UNEQUAL_TWO_SHOT(f16, tutti::Half)
TUTTI_UNEQUAL_TWO_SHOT(bf16, tutti::BFloat16)

#define TUTTI_ADD_PARTS(label, type)                                  \
  extern "C" __global__ void __launch_bounds__(tutti::kAddThreads)     \
      tutti_add_parts_##label##_sum(const __grid_constant__ tutti::ReduceCall call) { \
    tutti::addParts<type>(call);                                      \
  }

TUTTI_ADD_PARTS(f32, float)
TUTTI_ADD_PARTS(f64, double)
TUTTI_ADD_PARTS(f16, tutti::Half)
TUTTI_ADD_PARTS(bf16, tutti::BFloat16)
