// Large reductions and broadcasts by chunks in slots: push, reduce and push, take; each block a pipeline of its own.
#pragma once

#include "elements.cuh"
#include "patience.cuh"

namespace tutti {

// How many chunks the second and the third stage are behind the first. A slot is written again kChunkSlots chunks
// later, when the third stage of its last chunk, which proves that the peers are done with it, is behind.
constexpr u64 kReduceLag = 2;
constexpr u64 kTakeLag = 3;
constexpr u32 kPushUnroll = 4;
static_assert(kTakeLag < kChunkSlots && kReduceLag < kTakeLag, "slots would be overwritten");

// Sums of real numbers are what is tuned; the others share the code for any number of ranks.
// kMost: the most ranks, 4 or 8; kUnroll: vectors of each of them that a thread has in flight.
// kUnequal: a reduce-scatter of parts of unequal size. kSome: a launch may have some of the lanes.
template <class T, bool kAdds, bool kUnequal, u32 kMost, u32 kUnroll, bool kSome>
struct ChunkReduction {
  using F = Fold<T, kAdds, 4>;
  using R = Range<F::kSize>;

  static constexpr u32 kTurnUnroll = 8 / kMost;

  const Channel& channel;
  const ReduceCall& call;
  const u32 lane;
  const u32 rank;
  const u32 ranks;
  const u32 base;  // chunks of this lane in earlier calls
  const u32 step;  // bytes that the block's threads move at once
  char** const targets;  // of the block: each rank's result, where the two write to each other's, or null
  Patience patience;

  __device__ __forceinline__ ChunkReduction(const Channel& channel, const ReduceCall& call,
                                            char** targets)
      : channel(channel),
        call(call),
        lane(kSome ? laneOf(channel) : blockIdx.x),
        rank(channel.rank),
        ranks(channel.ranks),
        base(channel.state[lane].chunks),
        step(16 * blockDim.x),
        targets(targets),
        patience(channel.control, call.timeoutNs) {}

  __device__ __forceinline__ bool contributes(u32 r) const { return call.sources >> r & 1; }
  __device__ __forceinline__ bool gets(u32 r) const { return !kUnequal && (call.targets >> r & 1); }
  __device__ __forceinline__ u32 next(u32 peer) const { return peer + 1 == ranks ? 0 : peer + 1; }

  // Where chunk i of this lane begins within every part. The number of lanes is not a function, here and in run():
  // that changes which registers the tuned kernel spills, and makes it 7 % slower on an H200.
  __device__ __forceinline__ u64 within(u64 i) const {
    return (i * (kSome ? lanesOf(channel) : gridDim.x) + lane) * call.chunk;
  }

  // Chunk i of this lane within part r; shorter or empty at the end.
  __device__ __forceinline__ R chunkOf(const char* memory, u32 r, u64 i, bool partAlone) const {
    const u64 begin = partBegin<kUnequal>(call, r) + within(i);
    const u64 partBytes = kUnequal ? unequalBytes(call, r, ranks) : call.partBytes;
    const u64 inPart = within(i) >= partBytes ? 0 : partBytes - within(i);
    const u64 inAll = kUnequal ? inPart : begin >= call.bytes ? 0 : call.bytes - begin;
    u64 bytes = inPart < inAll ? inPart : inAll;
    bytes = bytes < call.chunk ? bytes : call.chunk;
    return R(memory + (partAlone ? within(i) : begin), bytes);
  }

  // Whether chunk i is whole in every part, and all of them can be read or written by 16 bytes.
  __device__ __forceinline__ bool isWhole(const char* memory, u64 i) const {
    const u64 end = within(i) + call.chunk;
    return ((reinterpret_cast<u64>(memory) | call.partBytes) & 15) == 0 && end <= call.partBytes &&
           (ranks - 1) * call.partBytes + end <= call.bytes;
  }

  // Where chunk i's slots begin in every rank's area, one for each sender.
  __device__ __forceinline__ u64 slots(u32 section, u64 i) const {
    return chunkOffset(channel, section, lane, (base + u32(i)) % kChunkSlots, 0);
  }

  // Where the results of chunk i of this rank's part begin in a peer's memory.
  __device__ __forceinline__ char* resultsAt(u32 peer, u64 i) const {
    char* target = targets[peer];
    return target != nullptr ? target + rank * call.partBytes + within(i)
                             : channel.areas[peer] + slots(kGatherChunks, i) + u64(rank) * channel.chunkBytes;
  }

  // After what all threads of the block did: tells every peer, at first also where this rank wants its result.
  __device__ __forceinline__ void signal(u32 kind, u64 i) const {
    __syncthreads();
    // Not the warp that waits next: a release takes as long as the block's stores that are under way.
    const u32 peer = blockDim.x > 32 ? threadIdx.x - (blockDim.x - 32) : threadIdx.x;
    if (peer < ranks && peer != rank) {
      if (kind == kScattered && i == 0) {
        storeRelaxed(
            reinterpret_cast<u64*>(channel.areas[peer] + targetOffset(channel, lane, rank)),
            call.shared[peer]);
      }
      storeRelease(
          reinterpret_cast<u32*>(channel.areas[peer] + flagOffset(channel, kind, lane, rank)),
          base + u32(i) + 1);
    }
  }

  // Before what all threads of the block do: waits for every peer.
  __device__ __forceinline__ bool await(u32 kind, u64 i) {
    const u32 peer = threadIdx.x;
    bool failed = false;
    if (peer < ranks && peer != rank) {
      const u32* flag = reinterpret_cast<const u32*>(channel.areas[rank] +
                                                     flagOffset(channel, kind, lane, peer));
      failed = !awaitFlag(flag, base + u32(i) + 1, patience, lane, peer);
      if (kind == kScattered && i == 0) {
        const u64 target = loadRelaxed(
            reinterpret_cast<const u64*>(channel.areas[rank] + targetOffset(channel, lane, peer)));
        const u64 number = call.shared[rank] & kMemoryNumber;
        targets[peer] = number != 0 && (target & kMemoryNumber) == number
                            ? reinterpret_cast<char*>(target & ~kMemoryNumber)
                            : nullptr;
      }
    }
    return __syncthreads_or(failed) == 0;
  }

  __device__ __forceinline__ uint4 contribution(uint4 bits) const {
    return vectorOf(F::contribution(wordsOf(bits), call.op, call.factor));
  }

  static __device__ __forceinline__ uint4 fetch(const char* from) {
    return __ldcg(reinterpret_cast<const uint4*>(from));
  }

  static __device__ __forceinline__ void put(char* to, uint4 bits) {
    *reinterpret_cast<uint4*>(to) = bits;
  }

  // Of all peers, those whose chunk is whole by vectors, and the others by what is there.
  __device__ __forceinline__ void pushUnequal(u64 i, u64 slot) const {
    u32 peer = rank;
#pragma unroll 1
    for (u32 k = 1; k < ranks; k++) {
      peer = next(peer);
      const R in = chunkOf(call.in, peer, i, false);
      char* to = channel.areas[peer] + slot;
      const u32 whole =
          in.bytes == call.chunk && isAligned(in.base, 16) && call.op != kPremulSum ? call.chunk : 0;
#pragma unroll 1
      for (u32 begin = threadIdx.x * 16; begin < whole; begin += kPushUnroll * step) {
        uint4 bits[kPushUnroll];
#pragma unroll
        for (u32 u = 0; u < kPushUnroll; u++) {
          if (begin + u * step < whole) {
            bits[u] = *reinterpret_cast<const uint4*>(in.base + begin + u * step);
          }
        }
#pragma unroll
        for (u32 u = 0; u < kPushUnroll; u++) {
          if (begin + u * step < whole) {
            put(to + begin + u * step, bits[u]);
          }
        }
      }
#pragma unroll 1
      for (u32 offset = whole + threadIdx.x * 16; offset < in.bytes; offset += step) {
        put(to + offset, contribution(in.load16(offset)));
      }
    }
  }

  // A peer at a time: faster, by a fiftieth, where no results are taken from slots, and slower, by a tenth, where they are.
  __device__ __forceinline__ void pushByPeers(u64 i, u64 slot) const {
    u32 peer = rank;
#pragma unroll 1
    for (u32 k = 1; k < ranks; k++) {
      peer = next(peer);
      const char* from = call.in + peer * call.partBytes + within(i);
      char* to = channel.areas[peer] + slot;
#pragma unroll 1
      for (u32 begin = threadIdx.x * 16; begin < call.chunk; begin += kPushUnroll * step) {
        uint4 bits[kPushUnroll];
#pragma unroll
        for (u32 u = 0; u < kPushUnroll; u++) {
          if (begin + u * step < call.chunk) {
            bits[u] = *reinterpret_cast<const uint4*>(from + begin + u * step);
          }
        }
#pragma unroll
        for (u32 u = 0; u < kPushUnroll; u++) {
          if (begin + u * step < call.chunk) {
            put(to + begin + u * step, bits[u]);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void pushByTurns(u64 i, u64 slot) const {
    const char* from[kMost];
    char* to[kMost];
    u32 peer = rank;
#pragma unroll
    for (u32 k = 1; k < kMost; k++) {
      peer = next(peer);
      if (k < ranks) {
        from[k] = call.in + peer * call.partBytes + within(i);
        to[k] = channel.areas[peer] + slot;
      }
    }
#pragma unroll 1
    for (u32 begin = threadIdx.x * 16; begin < call.chunk; begin += kTurnUnroll * step) {
      uint4 bits[kTurnUnroll][kMost];
#pragma unroll
      for (u32 u = 0; u < kTurnUnroll; u++) {
#pragma unroll
        for (u32 k = 1; k < kMost; k++) {
          if (k < ranks && begin + u * step < call.chunk) {
            bits[u][k] = *reinterpret_cast<const uint4*>(from[k] + begin + u * step);
          }
        }
      }
#pragma unroll
      for (u32 u = 0; u < kTurnUnroll; u++) {
#pragma unroll
        for (u32 k = 1; k < kMost; k++) {
          if (k < ranks && begin + u * step < call.chunk) {
            put(to[k] + begin + u * step, bits[u][k]);
          }
        }
      }
    }
  }

  // First stage: part r of this rank's memory goes to rank r.
  __device__ __forceinline__ void push(u64 i) const {
    const u64 slot = slots(kScatterChunks, i) + u64(rank) * channel.chunkBytes;
    if constexpr (kUnequal) {
      pushUnequal(i, slot);
    } else if (contributes(rank) && isWhole(call.in, i) && call.op != kPremulSum) {
      if (call.shared[rank] != 0) {
        pushByPeers(i, slot);
      } else {
        pushByTurns(i, slot);
      }
    } else if (contributes(rank)) {
      u32 peer = rank;
#pragma unroll 1
      for (u32 k = 1; k < ranks; k++) {
        peer = next(peer);
        const R in = chunkOf(call.in, peer, i, false);
#pragma unroll 1
        for (u32 offset = threadIdx.x * 16; offset < in.bytes; offset += step) {
          put(channel.areas[peer] + slot + offset, contribution(in.load16(offset)));
        }
      }
    }
    signal(kScattered, i);
  }

  // Reduces whole vectors, of which all are loaded before any is added.
  __device__ __forceinline__ void reduceWhole(const char* from, u64 i, const R& in, const R& out,
                                              bool keeps) const {
    char* to[kMost];
    u32 peer = rank;
#pragma unroll
    for (u32 k = 1; k < kMost; k++) {
      peer = next(peer);
      to[k] = k < ranks && gets(peer) ? resultsAt(peer, i) : nullptr;
    }
#pragma unroll 1
    for (u32 begin = threadIdx.x * 16; begin < call.chunk; begin += kUnroll * step) {
      Words<4> all[kUnroll][kMost];
#pragma unroll
      for (u32 u = 0; u < kUnroll; u++) {
        const u32 offset = begin + u * step;
#pragma unroll
        for (u32 r = 0; r < kMost; r++) {
          if (r < ranks && offset < call.chunk) {
            const char* slotOfRank = from + r * channel.chunkBytes + offset;
            all[u][r] = wordsOf(fetch(r == rank ? in.base + offset : slotOfRank));
          }
        }
      }
#pragma unroll
      for (u32 u = 0; u < kUnroll; u++) {
        const u32 offset = begin + u * step;
        if (offset < call.chunk) {
          const uint4 result = vectorOf(foldAll<T, kAdds>(all[u], ranks, call.op));
#pragma unroll
          for (u32 k = 1; k < kMost; k++) {
            if (k < ranks && to[k] != nullptr) {
              put(to[k] + offset, result);
            }
          }
          if (keeps) {
            put(out.base + offset, result);
          }
        }
      }
    }
  }

  // Reduces 16 bytes of this rank and of the slots of all others, in rank order.
  __device__ __forceinline__ Words<4> foldSlots(const Words<4>& own, const char* from) const {
    const auto of = [&](u32 r) {
      return r == rank ? own : wordsOf(fetch(from + r * channel.chunkBytes));
    };
    if constexpr (kAdds) {
      if (call.op == kAvg) {
        MeanFold<T, 4> mean;
#pragma unroll 1
        for (u32 r = 0; r < ranks; r++) {
          mean.add(of(r), r == 0, ranks);
        }
        return mean.finish(ranks);
      }
    }
    F fold;
    fold.start(of(0));
#pragma unroll 1
    for (u32 r = 1; r < ranks; r++) {
      fold.add(of(r), call.op);
    }
    return fold.finish();
  }

  // The same for any address and length, operator and source.
  __device__ __forceinline__ void reduceAny(const char* from, u64 i, const R& in, const R& out,
                                            bool keeps) const {
    const bool copies = !kUnequal && (call.sources & (call.sources - 1)) == 0;
    const u32 source = __ffs(call.sources) - 1;
#pragma unroll 1
    for (u32 offset = threadIdx.x * 16; offset < in.bytes; offset += step) {
      uint4 result;
      if (copies) {
        result = source == rank ? in.load16(offset)
                                : fetch(from + source * channel.chunkBytes + offset);
      } else {
        const uint4 own = contribution(in.load16(offset));
        result = vectorOf(foldSlots(wordsOf(own), from + offset));
      }
      u32 peer = rank;
#pragma unroll 1
      for (u32 k = 1; k < ranks; k++) {
        peer = next(peer);
        if (gets(peer)) {
          put(resultsAt(peer, i) + offset, result);
        }
      }
      if (keeps) {
        out.store16(offset, result);
      }
    }
  }

  // Second stage: this rank's part of all, reduced, goes to all targets.
  __device__ __forceinline__ bool reduce(u64 i) {
    if (!await(kScattered, i)) {
      return false;
    }
    const R in = chunkOf(call.in, rank, i, false);
    const R out = chunkOf(call.out, rank, i, kUnequal || call.targets == 0);
    const bool keeps = kUnequal || call.targets == 0 || gets(rank);
    const char* from = channel.areas[rank] + slots(kScatterChunks, i);
    const bool everyone =
        (kUnequal || (call.sources & (call.sources - 1)) != 0) && call.op != kPremulSum;
    if (kAdds && !Element<T>::kInteger && everyone && in.bytes == call.chunk && isAligned(in.base, 16) &&
        (!keeps || isAligned(out.base, 16))) {
      reduceWhole(from, i, in, out, keeps);
    } else {
      reduceAny(from, i, in, out, keeps);
    }
    signal(kGathered, i);
    return true;
  }

  // Third stage: the peers' reduced parts go from their slots to this rank's memory, unless they are there already.
  __device__ __forceinline__ bool take(u64 i) {
    if (!await(kGathered, i)) {
      return false;
    }
    if constexpr (kUnequal) {
      return true;
    }
    u32 slotted = 0;
#pragma unroll
    for (u32 r = 0; r < kMost; r++) {
      slotted |= r < ranks && r != rank && targets[r] == nullptr ? 1u << r : 0;
    }
    if (slotted == 0) {
      return true;
    }
    const char* from = channel.areas[rank] + slots(kGatherChunks, i);
    if (gets(rank) && isWhole(call.out, i)) {
      char* to[kMost];
#pragma unroll
      for (u32 r = 0; r < kMost; r++) {
        to[r] = call.out + r * call.partBytes + within(i);
      }
#pragma unroll 1
      for (u32 begin = threadIdx.x * 16; begin < call.chunk; begin += kUnroll * step) {
        uint4 bits[kUnroll][kMost];
#pragma unroll
        for (u32 u = 0; u < kUnroll; u++) {
#pragma unroll
          for (u32 r = 0; r < kMost; r++) {
            if ((slotted >> r & 1) && begin + u * step < call.chunk) {
              bits[u][r] = fetch(from + r * channel.chunkBytes + begin + u * step);
            }
          }
        }
#pragma unroll
        for (u32 u = 0; u < kUnroll; u++) {
#pragma unroll
          for (u32 r = 0; r < kMost; r++) {
            if ((slotted >> r & 1) && begin + u * step < call.chunk) {
              put(to[r] + begin + u * step, bits[u][r]);
            }
          }
        }
      }
    } else if (gets(rank)) {
#pragma unroll 1
      for (u32 r = 0; r < ranks; r++) {
        const R out = chunkOf(call.out, r, i, false);
#pragma unroll 1
        for (u32 offset = threadIdx.x * 16; (slotted >> r & 1) && offset < out.bytes; offset += step) {
          out.store16(offset, fetch(from + r * channel.chunkBytes + offset));
        }
      }
    }
    return true;
  }

  __device__ __forceinline__ void run() {
    const u64 chunks = (call.partBytes + call.chunk - 1) / call.chunk;
    const u64 count = chunks > lane ? (chunks - lane + (kSome ? lanesOf(channel) : gridDim.x) - 1) /
                                          (kSome ? lanesOf(channel) : gridDim.x)
                                    : 0;
#pragma unroll 1
    for (u64 i = 0; i < count + kTakeLag; i++) {
      if (i < count) {
        push(i);
      }
      if (i >= kReduceLag && i - kReduceLag < count && !reduce(i - kReduceLag)) {
        return;
      }
      if (i >= kTakeLag && !take(i - kTakeLag)) {
        return;
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      channel.state[lane].chunks = base + u32(count);
    }
  }
};

// What is tuned has all lanes, and a kernel of its own for some of them, which costs the other one no registers.
template <class T, bool kAdds, bool kUnequal, bool kSome>
__device__ __forceinline__ void reduceByChunks(const Channel& channel, const ReduceCall& call) {
  __shared__ char* targets[kMaxRanks];
  if constexpr (kAdds && !Element<T>::kInteger) {
    if (channel.ranks <= 4) {
      ChunkReduction<T, kAdds, kUnequal, 4, 2, kSome>(channel, call, targets).run();
      return;
    }
  }
  ChunkReduction<T, kAdds, kUnequal, 8, 1, kSome>(channel, call, targets).run();
}

}  // namespace tutti
