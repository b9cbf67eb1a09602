// Moves bytes between all pairs of ranks: all-gather, all-to-all, gather, scatter, broadcast, send and receive. A pair's
// protocol, chunks and lanes follow from its bytes alone, which both of its sides know; ranks may differ in their grids.
#pragma once

#include "patience.cuh"

namespace tutti {

constexpr u32 kPacketsPerLane = 128;
constexpr u32 kChunkGrain = 2048;

struct PairPlan {
  bool packets;
  u32 lanes;
  u64 perLane;  // packets of a lane
  u32 chunk;    // bytes of a chunk
  u64 chunks;

  __device__ __forceinline__ PairPlan(const Channel& channel, u64 bytes, u64 packetLimit) {
    packets = bytes <= packetLimit;
    const u64 count = (bytes + kMessageBytes - 1) / kMessageBytes;
    const u64 wanted = (count + kPacketsPerLane - 1) / kPacketsPerLane;
    lanes = wanted < channel.lanes ? u32(wanted) : channel.lanes;
    perLane = lanes == 0 ? 0 : (count + lanes - 1) / lanes;
    const u64 share = (bytes + channel.lanes - 1) / channel.lanes;
    const u64 rounded = (share + kChunkGrain - 1) / kChunkGrain * kChunkGrain;
    chunk = rounded < channel.chunkBytes ? u32(rounded) : channel.chunkBytes;
    chunks = packets || bytes == 0 ? 0 : (bytes + chunk - 1) / chunk;
  }

  __device__ __forceinline__ bool hasPackets(u64 bytes, u32 lane) const {
    return packets && bytes > 0 && lane * perLane * kMessageBytes < bytes;
  }
};

struct Exchange {
  using R = Range<1>;

  const Channel& channel;
  const ExchangeCall& call;
  const u32 lane;
  const u32 rank;
  LaneState* const state;
  Patience patience;

  __device__ __forceinline__ Exchange(const Channel& channel, const ExchangeCall& call)
      : channel(channel),
        call(call),
        lane(blockIdx.x),
        rank(channel.rank),
        state(channel.state + blockIdx.x),
        patience(channel.control, call.timeoutNs) {}

  __device__ __forceinline__ const u32* ownFlag(u32 kind, u32 peer) const {
    return reinterpret_cast<const u32*>(channel.areas[rank] + flagOffset(channel, kind, lane, peer));
  }

  __device__ __forceinline__ u32* peerFlag(u32 kind, u32 peer) const {
    return reinterpret_cast<u32*>(channel.areas[peer] + flagOffset(channel, kind, lane, rank));
  }

  __device__ __forceinline__ bool sendPackets(u32 peer) {
    const u64 bytes = call.sendBytes[peer];
    const PairPlan plan(channel, bytes, call.packetLimit);
    if (!plan.hasPackets(bytes, lane)) {
      return true;
    }
    const u64 message = state->messagesSent[peer] + 1;
    // The slot of two messages ago has been read.
    if (!awaitFlag(ownFlag(kRead, peer), u32(message) - 2, patience, lane, peer)) {
      return false;
    }
    char* slots = channel.areas[peer] + packetOffset(channel, kMessages, lane, message & 1, rank);
    const R from(call.src[peer], bytes);
    const u64 begin = lane * plan.perLane;
#pragma unroll 1
    for (u64 i = threadIdx.x; i < plan.perLane && (begin + i) * kMessageBytes < bytes;
         i += blockDim.x) {
      storePacket(slots + kPacketBytes * i, from.load8((begin + i) * kMessageBytes), message);
    }
    return true;
  }

  __device__ __forceinline__ bool receivePackets(u32 peer) {
    const u64 bytes = call.recvBytes[peer];
    const PairPlan plan(channel, bytes, call.packetLimit);
    if (!plan.hasPackets(bytes, lane)) {
      return true;
    }
    const u64 message = state->messagesReceived[peer] + 1;
    const char* slots =
        channel.areas[rank] + packetOffset(channel, kMessages, lane, message & 1, peer);
    const R to(call.dst[peer], bytes);
    const u64 begin = lane * plan.perLane;
#pragma unroll 1
    for (u64 i = threadIdx.x; i < plan.perLane && (begin + i) * kMessageBytes < bytes;
         i += blockDim.x) {
      Packet packet = loadPacket(slots + kPacketBytes * i);
      while (packet.sequence != message) {
        if (patience.isOver(lane, peer)) {
          return false;
        }
        packet = loadPacket(slots + kPacketBytes * i);
      }
      to.store8((begin + i) * kMessageBytes, packet.data);
    }
    return true;
  }

  // Thread p, for peer p, after the block has sent and received packets.
  __device__ __forceinline__ void countPackets() {
    const u32 peer = threadIdx.x;
    if (peer >= channel.ranks || peer == rank) {
      return;
    }
    const PairPlan sent(channel, call.sendBytes[peer], call.packetLimit);
    if (sent.hasPackets(call.sendBytes[peer], lane)) {
      state->messagesSent[peer]++;
    }
    const PairPlan received(channel, call.recvBytes[peer], call.packetLimit);
    if (received.hasPackets(call.recvBytes[peer], lane)) {
      const u64 message = ++state->messagesReceived[peer];
      storeRelease(peerFlag(kRead, peer), u32(message));
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

  // A chunk of a pair: number c of the pair is number c / lanes of lane c % lanes.
  __device__ __forceinline__ static bool chunkAt(const PairPlan& plan, u64 bytes, u64 number,
                                                 u64& offset, u32& size) {
    if (number >= plan.chunks) {
      return false;
    }
    offset = number * plan.chunk;
    size = bytes - offset < plan.chunk ? u32(bytes - offset) : plan.chunk;
    return true;
  }

  // Whether this lane has a chunk of a pair in a round, and which.
  __device__ __forceinline__ bool chunkOf(u64 bytes, u64 round, u64& offset, u32& size) const {
    const PairPlan plan(channel, bytes, call.packetLimit);
    return chunkAt(plan, bytes, round * channel.lanes + lane, offset, size);
  }

  // One thread per peer waits until a flag says that the peer's slot can be written or read, if there is a chunk.
  __device__ __forceinline__ bool awaitRound(const u64* bytes, const u32* before, u64 round, u32 kind,
                                             u32 behind) {
    const u32 peer = threadIdx.x;
    bool failed = false;
    u64 offset;
    u32 size;
    if (peer < channel.ranks && peer != rank && chunkOf(bytes[peer], round, offset, size)) {
      failed = !awaitFlag(ownFlag(kind, peer), before[peer] + u32(round) + 1 - behind, patience,
                          lane, peer);
    }
    return __syncthreads_or(failed) == 0;
  }

  // After what all threads did: one thread per peer says how many chunks were pushed or taken.
  __device__ __forceinline__ void signalRound(const u64* bytes, const u32* before, u64 round,
                                              u32 kind) const {
    __syncthreads();
    const u32 peer = threadIdx.x;
    u64 offset;
    u32 size;
    if (peer < channel.ranks && peer != rank && chunkOf(bytes[peer], round, offset, size)) {
      storeRelease(peerFlag(kind, peer), before[peer] + u32(round) + 1);
    }
  }

  __device__ __forceinline__ bool sendRound(u64 round) {
    if (!awaitRound(call.sendBytes, state->chunksSent, round, kConsumed, kChunkSlots)) {
      return false;
    }
#pragma unroll 1
    for (u32 step = 1; step < channel.ranks; step++) {
      const u32 peer = peerAt(step, false);
      u64 offset;
      u32 size;
      if (chunkOf(call.sendBytes[peer], round, offset, size)) {
        const u32 number = state->chunksSent[peer] + u32(round) + 1;
        char* slot = channel.areas[peer] +
                     chunkOffset(channel, kScatterChunks, lane, number % kChunkSlots, rank);
        copy(R(call.src[peer], call.sendBytes[peer]), offset, R(slot, (size + 15) & ~15u), 0, size);
      }
    }
    signalRound(call.sendBytes, state->chunksSent, round, kArrived);
    return true;
  }

  __device__ __forceinline__ bool receiveRound(u64 round) {
    if (!awaitRound(call.recvBytes, state->chunksReceived, round, kArrived, 0)) {
      return false;
    }
#pragma unroll 1
    for (u32 step = 1; step < channel.ranks; step++) {
      const u32 peer = peerAt(step, true);
      u64 offset;
      u32 size;
      if (chunkOf(call.recvBytes[peer], round, offset, size)) {
        const u32 number = state->chunksReceived[peer] + u32(round) + 1;
        const char* slot = channel.areas[rank] +
                           chunkOffset(channel, kScatterChunks, lane, number % kChunkSlots, peer);
        copy(R(slot, (size + 15) & ~15u), 0, R(call.dst[peer], call.recvBytes[peer]), offset, size);
      }
    }
    signalRound(call.recvBytes, state->chunksReceived, round, kConsumed);
    return true;
  }

  __device__ __forceinline__ u64 roundsOf(u64 bytes) const {
    const u64 chunks = PairPlan(channel, bytes, call.packetLimit).chunks;
    return chunks > lane ? (chunks - lane + channel.lanes - 1) / channel.lanes : 0;
  }

  // Waits until every chunk of mine was taken: whoever uses the slots next finds them free.
  __device__ __forceinline__ bool drain() {
    const u32 peer = threadIdx.x;
    bool failed = false;
    if (peer < channel.ranks && peer != rank) {
      const u32 sent = state->chunksSent[peer] + u32(roundsOf(call.sendBytes[peer]));
      failed = !awaitFlag(ownFlag(kConsumed, peer), sent, patience, lane, peer);
      if (!failed) {
        state->chunksSent[peer] = sent;
        state->chunksReceived[peer] += u32(roundsOf(call.recvBytes[peer]));
      }
    }
    return __syncthreads_or(failed) == 0;
  }

  __device__ __forceinline__ void copyOwn() const {
    const R from(call.src[rank], call.sendBytes[rank]);
    const R to(call.dst[rank], call.sendBytes[rank]);
    const u64 share = (from.bytes / gridDim.x + 16) / 16 * 16;
#pragma unroll 1
    for (u64 offset = lane * share; offset < from.bytes && offset < (lane + 1) * share;) {
      const u64 end = (lane + 1) * share < from.bytes ? (lane + 1) * share : from.bytes;
      const u32 size = end - offset < (1u << 30) ? u32(end - offset) : 1u << 30;
      copy(from, offset, to, offset, size);
      offset += size;
    }
  }

  __device__ __forceinline__ u32 peerAt(u32 step, bool receiving) const {
    const u32 peer = receiving ? rank + channel.ranks - step : rank + step;
    return peer >= channel.ranks ? peer - channel.ranks : peer;
  }

  __device__ __forceinline__ void run() {
    bool ok = true;
#pragma unroll 1
    for (u32 step = 1; ok && step < channel.ranks; step++) {
      ok = sendPackets(peerAt(step, false));
    }
    if (call.src[rank] != call.dst[rank] && call.sendBytes[rank] > 0) {
      copyOwn();
    }
#pragma unroll 1
    for (u32 step = 1; ok && step < channel.ranks; step++) {
      ok = receivePackets(peerAt(step, true));
    }
    if (__syncthreads_or(!ok)) {
      return;
    }
    u64 rounds = 0;
#pragma unroll 1
    for (u32 r = 0; r < channel.ranks; r++) {
      if (r != rank) {
        const u64 out = roundsOf(call.sendBytes[r]);
        const u64 in = roundsOf(call.recvBytes[r]);
        const u64 most = out > in ? out : in;
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
  tutti::Exchange(channel, call).run();
}
