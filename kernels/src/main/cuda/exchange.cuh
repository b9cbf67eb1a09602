// Moves bytes between all pairs of ranks: all-gather, all-to-all, gather, scatter, broadcast, send and receive. A pair's
// protocol, chunks and lanes follow from its bytes alone, which both of its sides know; ranks may differ in their grids.
#pragma once

#include "patience.cuh"

namespace tutti {

constexpr u32 kPacketsPerLane = 128;
constexpr u32 kChunkGrain = 2048;

// How the bytes of a pair travel.
struct PairPlan {
  u32 begin;   // where the packets of a lane begin, in bytes
  u32 count;   // how many packets a lane has
  u32 chunk;   // bytes of a chunk
  u64 rounds;  // chunks of a lane

  __device__ __forceinline__ PairPlan(const Channel& channel, u64 bytes, u64 packetLimit, u32 lane)
      : begin(0), count(0), chunk(0), rounds(0) {
    if (bytes <= packetLimit) {
      // Fits 32 bits, whose divisions are fast.
      const u32 packets = (u32(bytes) + kMessageBytes - 1) / kMessageBytes;
      const u32 wanted = (packets + kPacketsPerLane - 1) / kPacketsPerLane;
      const u32 lanes = wanted < channel.lanes ? wanted : channel.lanes;
      const u32 perLane = lanes <= 1 ? packets : (packets + lanes - 1) / lanes;
      const u32 first = lane * perLane;
      begin = first * kMessageBytes;
      count = lane >= lanes || first >= packets ? 0 : min(perLane, packets - first);
    } else {
      const u64 share = (bytes + channel.lanes - 1) / channel.lanes;
      const u64 rounded = (share + kChunkGrain - 1) / kChunkGrain * kChunkGrain;
      chunk = rounded < channel.chunkBytes ? u32(rounded) : channel.chunkBytes;
      const u64 chunks = (bytes + chunk - 1) / chunk;
      rounds = chunks > lane ? (chunks - lane + channel.lanes - 1) / channel.lanes : 0;
    }
  }
};

// What a lane sends to a peer, or gets from it.
struct PairSide {
  char* memory;
  u64 bytes;
  u64 message;  // number of the packets, if there are any
  u64 rounds;
  u32 before;  // chunks of earlier calls
  u32 begin;
  u32 count;
  u32 chunk;
};

struct Exchange {
  using R = Range<1>;

  const Channel& channel;
  const ExchangeCall& call;
  PairSide* const sides;  // of the block: to each rank, then from each
  const u32 lane;
  const u32 rank;
  const u32 ranks;
  LaneState* const state;
  Patience patience;

  __device__ __forceinline__ Exchange(const Channel& channel, const ExchangeCall& call,
                                      PairSide* sides)
      : channel(channel),
        call(call),
        sides(sides),
        lane(laneOf(channel)),
        rank(channel.rank),
        ranks(channel.ranks),
        state(channel.state + lane),
        patience(channel.control, call.timeoutNs) {}

  __device__ __forceinline__ const u32* ownFlag(u32 kind, u32 peer) const {
    return reinterpret_cast<const u32*>(channel.areas[rank] + flagOffset(channel, kind, lane, peer));
  }

  __device__ __forceinline__ u32* peerFlag(u32 kind, u32 peer) const {
    return reinterpret_cast<u32*>(channel.areas[peer] + flagOffset(channel, kind, lane, rank));
  }

  __device__ __forceinline__ const PairSide& to(u32 peer) const { return sides[peer]; }

  __device__ __forceinline__ const PairSide& from(u32 peer) const {
    return sides[kMaxRanks + peer];
  }

  __device__ __forceinline__ u32 next(u32 peer) const { return peer + 1 == ranks ? 0 : peer + 1; }

  // One thread per side: plans it, says what earlier kernels have read, and waits until the peer has read the packets
  // of two messages ago.
  __device__ __forceinline__ bool prepare() {
    const u32 peer = threadIdx.x % kMaxRanks;
    const bool sends = threadIdx.x < kMaxRanks;
    bool failed = false;
    if (threadIdx.x < 2 * kMaxRanks && peer < ranks && peer != rank) {
      const u64 messages = sends ? state->messagesSent[peer] : state->messagesReceived[peer];
      const u32 chunks = sends ? state->chunksSent[peer] : state->chunksReceived[peer];
      const u64 bytes = sends ? call.sendBytes[peer] : call.recvBytes[peer];
      const PairPlan plan(channel, bytes, call.packetLimit, lane);
      PairSide& side = sides[threadIdx.x];
      side.memory = sends ? const_cast<char*>(call.src[peer]) : call.dst[peer];
      side.bytes = bytes;
      side.message = messages + 1;
      side.rounds = plan.rounds;
      side.before = chunks;
      side.begin = plan.begin;
      side.count = plan.count;
      side.chunk = plan.chunk;
      if (!sends) {
        storeRelaxed(peerFlag(kRead, peer), u32(messages));
      }
      failed = sends && plan.count > 0 &&
               !awaitFlag(ownFlag(kRead, peer), u32(messages) - 1, patience, lane, peer);
    }
    return __syncthreads_or(failed) == 0;
  }

  __device__ __forceinline__ u32 mostPackets(u32 first) const {
    u32 most = 0;
#pragma unroll
    for (u32 r = 0; r < kMaxRanks; r++) {
      if (r < ranks && r != rank) {
        most = max(most, sides[first + r].count);
      }
    }
    return most;
  }

  // All loads of a packet for each peer are in flight before the first is sent.
  __device__ __forceinline__ void sendPackets() const {
    const u32 most = mostPackets(0);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < most; i += blockDim.x) {
      u64 data[kMaxRanks];
      u32 peer = rank;
#pragma unroll
      for (u32 k = 1; k < kMaxRanks; k++) {
        peer = next(peer);
        if (k < ranks && i < to(peer).count) {
          data[k] = R(to(peer).memory, to(peer).bytes).load8(to(peer).begin + i * kMessageBytes);
        }
      }
      peer = rank;
#pragma unroll
      for (u32 k = 1; k < kMaxRanks; k++) {
        peer = next(peer);
        if (k < ranks && i < to(peer).count) {
          const u64 message = to(peer).message;
          storePacket(channel.areas[peer] +
                          packetOffset(channel, kMessages, lane, message & 1, rank) +
                          kPacketBytes * i,
                      data[k], message);
        }
      }
    }
  }

  __device__ __forceinline__ bool receivePackets() {
    const u32 most = mostPackets(kMaxRanks);
#pragma unroll 1
    for (u32 i = threadIdx.x; i < most; i += blockDim.x) {
      u32 missing = 0;
#pragma unroll
      for (u32 r = 0; r < kMaxRanks; r++) {
        missing |= r < ranks && r != rank && i < from(r).count ? 1u << r : 0;
      }
      while (missing != 0) {
        Packet packets[kMaxRanks];
#pragma unroll
        for (u32 r = 0; r < kMaxRanks; r++) {
          if (missing >> r & 1) {
            packets[r] = loadPacket(
                channel.areas[rank] +
                packetOffset(channel, kMessages, lane, from(r).message & 1, r) + kPacketBytes * i);
          }
        }
#pragma unroll
        for (u32 r = 0; r < kMaxRanks; r++) {
          if ((missing >> r & 1) && packets[r].sequence == from(r).message) {
            R(from(r).memory, from(r).bytes)
                .store8(from(r).begin + i * kMessageBytes, packets[r].data);
            missing &= ~(1u << r);
          }
        }
        if (missing != 0 && patience.isOver(lane, __ffs(missing) - 1)) {
          return false;
        }
      }
    }
    return true;
  }

  // Thread p, for peer p, after the block has sent and received packets.
  __device__ __forceinline__ void countPackets() {
    const u32 peer = threadIdx.x;
    if (peer >= ranks || peer == rank) {
      return;
    }
    if (to(peer).count > 0) {
      state->messagesSent[peer] = to(peer).message;
    }
    if (from(peer).count > 0) {
      state->messagesReceived[peer] = from(peer).message;
    }
  }

  __device__ __forceinline__ static void copy(const R& from, u64 offset, const R& to, u64 toOffset,
                                              u32 bytes) {
    constexpr u32 kUnroll = 4;
    const u32 step = blockDim.x * 16;
#pragma unroll 1
    for (u32 at = threadIdx.x * 16; at < bytes; at += kUnroll * step) {
      uint4 bits[kUnroll];
#pragma unroll
      for (u32 u = 0; u < kUnroll; u++) {
        if (at + u * step < bytes) {
          bits[u] = from.load16(offset + at + u * step);
        }
      }
#pragma unroll
      for (u32 u = 0; u < kUnroll; u++) {
        if (at + u * step < bytes) {
          to.store16(toOffset + at + u * step, bits[u]);
        }
      }
    }
  }

  // Chunk number c of a pair is number c / lanes of lane c % lanes.
  __device__ __forceinline__ u64 offsetOf(const PairSide& side, u64 round) const {
    return (round * channel.lanes + lane) * side.chunk;
  }

  __device__ __forceinline__ static u32 sizeAt(const PairSide& side, u64 offset) {
    return side.bytes - offset < side.chunk ? u32(side.bytes - offset) : side.chunk;
  }

  // One thread per peer waits until a flag says that the peer's slot can be written or read, if there is a chunk.
  __device__ __forceinline__ bool awaitRound(u32 first, u64 round, u32 kind, u32 behind) {
    const u32 peer = threadIdx.x;
    bool failed = false;
    if (peer < ranks && peer != rank && round < sides[first + peer].rounds) {
      failed = !awaitFlag(ownFlag(kind, peer), sides[first + peer].before + u32(round) + 1 - behind,
                          patience, lane, peer);
    }
    return __syncthreads_or(failed) == 0;
  }

  // After what all threads did: one thread per peer says how many chunks were pushed or taken.
  __device__ __forceinline__ void signalRound(u32 first, u64 round, u32 kind) const {
    __syncthreads();
    const u32 peer = threadIdx.x;
    if (peer < ranks && peer != rank && round < sides[first + peer].rounds) {
      storeRelease(peerFlag(kind, peer), sides[first + peer].before + u32(round) + 1);
    }
  }

  __device__ __forceinline__ char* slot(u32 receiver, u32 sender, u32 number) const {
    return channel.areas[receiver] +
           chunkOffset(channel, kScatterChunks, lane, number % kChunkSlots, sender);
  }

  __device__ __forceinline__ bool sendRound(u64 round) {
    if (!awaitRound(0, round, kConsumed, kChunkSlots)) {
      return false;
    }
    u32 peer = rank;
#pragma unroll 1
    for (u32 k = 1; k < ranks; k++) {
      peer = next(peer);
      const PairSide& side = to(peer);
      if (round < side.rounds) {
        const u64 offset = offsetOf(side, round);
        const u32 size = sizeAt(side, offset);
        copy(R(side.memory, side.bytes), offset,
             R(slot(peer, rank, side.before + u32(round) + 1), (size + 15) & ~15u), 0, size);
      }
    }
    signalRound(0, round, kArrived);
    return true;
  }

  __device__ __forceinline__ bool receiveRound(u64 round) {
    if (!awaitRound(kMaxRanks, round, kArrived, 0)) {
      return false;
    }
#pragma unroll 1
    for (u32 k = 1; k < ranks; k++) {
      const u32 peer = rank >= k ? rank - k : rank + ranks - k;
      const PairSide& side = from(peer);
      if (round < side.rounds) {
        const u64 offset = offsetOf(side, round);
        const u32 size = sizeAt(side, offset);
        copy(R(slot(rank, peer, side.before + u32(round) + 1), (size + 15) & ~15u), 0,
             R(side.memory, side.bytes), offset, size);
      }
    }
    signalRound(kMaxRanks, round, kConsumed);
    return true;
  }

  // Waits until every chunk of mine was taken: whoever uses the slots next finds them free.
  __device__ __forceinline__ bool drain() {
    const u32 peer = threadIdx.x;
    bool failed = false;
    if (peer < ranks && peer != rank) {
      const u32 sent = to(peer).before + u32(to(peer).rounds);
      failed = !awaitFlag(ownFlag(kConsumed, peer), sent, patience, lane, peer);
      if (!failed) {
        state->chunksSent[peer] = sent;
        state->chunksReceived[peer] = from(peer).before + u32(from(peer).rounds);
      }
    }
    return __syncthreads_or(failed) == 0;
  }

  __device__ __forceinline__ void copyOwn() const {
    const R from(call.src[rank], call.sendBytes[rank]);
    const R to(call.dst[rank], call.sendBytes[rank]);
    const u64 share = (from.bytes / lanesOf(channel) + 16) / 16 * 16;
#pragma unroll 1
    for (u64 offset = lane * share; offset < from.bytes && offset < (lane + 1) * share;) {
      const u64 end = (lane + 1) * share < from.bytes ? (lane + 1) * share : from.bytes;
      const u32 size = end - offset < (1u << 30) ? u32(end - offset) : 1u << 30;
      copy(from, offset, to, offset, size);
      offset += size;
    }
  }

  __device__ __forceinline__ void run() {
    if (!prepare()) {
      return;
    }
    sendPackets();
    if (call.src[rank] != call.dst[rank] && call.sendBytes[rank] > 0) {
      copyOwn();
    }
    if (__syncthreads_or(!receivePackets())) {
      return;
    }
    u64 rounds = 0;
#pragma unroll 1
    for (u32 r = 0; r < ranks; r++) {
      if (r != rank) {
        const u64 most = to(r).rounds > from(r).rounds ? to(r).rounds : from(r).rounds;
        rounds = most > rounds ? most : rounds;
      }
    }
    countPackets();
    if (rounds == 0) {
      return;
    }
#pragma unroll 1
    for (u64 round = 0; round <= rounds; round++) {
      if (!sendRound(round) || (round > 0 && !receiveRound(round - 1))) {
        return;
      }
    }
    drain();
  }
};

}  // namespace tutti

extern "C" __global__ void __launch_bounds__(512)
    tutti_exchange(const __grid_constant__ tutti::Channel channel,
                   const __grid_constant__ tutti::ExchangeCall call) {
  __shared__ tutti::PairSide sides[2 * tutti::kMaxRanks];
  tutti::Exchange(channel, call, sides).run();
}
