// What host and device share: the arguments of the kernels and the layout of a channel's memory.
// docs/gpu-kernels.md has the protocols; dev.tutti.kernels.ChannelLayout computes the same offsets.
#pragma once

namespace tutti {

using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 kMaxRanks = 8;
constexpr u32 kPacketBytes = 16;
constexpr u32 kMessageBytes = 8;  // data of a packet of an exchange
constexpr u32 kChunkSlots = 4;

enum Status : u32 { kOk = 0, kRunning = 1, kTimedOut = 2, kAborted = 3 };

enum Op : u32 {
  kSum = 0,
  kAvg = 1,
  kProduct = 2,
  kMin = 3,
  kMax = 4,
  kBand = 5,
  kBor = 6,
  kBxor = 7,
  kPremulSum = 8
};

// Words of 32 bits in a rank's area that its peers write: [kind][lane][peer].
enum Flag : u32 {
  kScattered = 0,  // peer pushed so many chunks of my part
  kGathered = 1,   // peer reduced so many chunks of its part, and pushed them
  kBarrier = 2,    // peer entered so many barriers
  kArrived = 3,    // peer pushed so many chunks of an exchange
  kConsumed = 4,   // peer took so many chunks of an exchange
  kRead = 5,       // peer read so many packet messages of an exchange
  kFlagKinds = 6
};

// Behind the flags, words of 64 bits: [lane][peer], the peer's ReduceCall::shared for this rank.
constexpr u32 kTargetBytes = 8;
constexpr u64 kMemoryNumber = 15;  // bits of it

// Sums of real numbers have full packets: an empty place is zero, and the last word is sent as its difference to kEmpty. Data
// never has that word: it ends a NaN of each of the types, for which another one is sent, as a sum of either is a NaN.
constexpr u32 kEmpty = 0xffffdead;
constexpr u32 kOtherNan = 0xfffedead;

enum PacketSection : u32 { kShot = 0, kSpread = 1, kMessages = 2, kPacketSections = 3 };
constexpr u32 kFullSections = 2;  // kShot and kSpread
enum ChunkSection : u32 { kScatterChunks = 0, kGatherChunks = 1, kChunkSections = 2 };

// Counters of one lane of one rank, in that rank's own memory; zero at first. Written by the lane's block only.
struct LaneState {
  u64 packets;
  u32 chunks;
  u32 barriers;
  u64 messagesSent[kMaxRanks];
  u64 messagesReceived[kMaxRanks];
  u32 chunksSent[kMaxRanks];
  u32 chunksReceived[kMaxRanks];
  u32 fullPackets;
  u32 padding[11];
};
static_assert(sizeof(LaneState) == 256, "the layout is known to the host");

// One rank's view of a channel. A block of a kernel works on one lane alone, the same on all ranks.
struct Channel {
  u32 rank;
  u32 ranks;
  u32 lanes;
  u32 packetSlots;  // packets per lane, parity and sender
  u32 chunkBytes;   // bytes of a chunk slot; a multiple of 16
  u32 fullSlots;    // packets full of data per lane, parity and sender
  u32* control;     // host memory: [0] abort, [1] status
  LaneState* state;
  char* areas[kMaxRanks];
  u32 firstLane;  // the lane of block 0
  u32 callLanes;  // lanes of the whole call, or 0: as many as there are blocks
};
static_assert(sizeof(Channel) == 112, "the layout is known to the host");

struct ReduceCall {
  const char* in;
  char* out;
  u64 bytes;
  u64 partBytes;
  double factor;
  u64 timeoutNs;
  u32 op;
  u32 sources;  // bit r: rank r contributes; all ranks, or one, whose elements are copied
  u32 targets;  // bit r: rank r gets the whole result; none: each rank gets its part
  u32 chunk;    // bytes of a chunk; a multiple of 16, at most chunkBytes
  // In a reduce-scatter of unequal parts: where each part begins, in bytes, times 16; partBytes is then the longest.
  // If out is in memory that all ranks share: where each of them addresses it, a multiple of 16 as bytes is then, plus the
  // number of that memory, from 1 to 15; else 0. Two ranks write each other's results if they have the same number.
  u64 shared[kMaxRanks];
};
static_assert(sizeof(ReduceCall) == 128, "the layout is known to the host");

// Where part r of all begins, and how long it is.
template <bool kUnequal>
__device__ __forceinline__ u64 partBegin(const ReduceCall& call, u32 r) {
  return kUnequal ? call.shared[r] >> 4 : r * call.partBytes;
}

__device__ __forceinline__ u64 unequalBytes(const ReduceCall& call, u32 r, u32 ranks) {
  return (r + 1 < ranks ? call.shared[r + 1] >> 4 : call.bytes) - (call.shared[r] >> 4);
}

struct ExchangeCall {
  const char* src[kMaxRanks];
  char* dst[kMaxRanks];
  u64 sendBytes[kMaxRanks];
  u64 recvBytes[kMaxRanks];
  u64 packetLimit;  // pairs up to here use packets
  u64 timeoutNs;
};
static_assert(sizeof(ExchangeCall) == 272, "the layout is known to the host");

struct SignalPads {
  u32* pads[kMaxRanks];
};

__host__ __device__ inline u64 flagOffset(const Channel& channel, u32 kind, u32 lane, u32 peer) {
  return 4ull * ((u64(kind) * channel.lanes + lane) * kMaxRanks + peer);
}

__host__ __device__ inline u64 targetOffset(const Channel& channel, u32 lane, u32 peer) {
  return 4ull * kFlagKinds * kMaxRanks * channel.lanes + kTargetBytes * (u64(lane) * kMaxRanks + peer);
}

__host__ __device__ inline u64 flagBytes(const Channel& channel) {
  return targetOffset(channel, channel.lanes, 0);
}

__host__ __device__ inline u64 packetSectionBytes(const Channel& channel) {
  return 2ull * kPacketBytes * channel.lanes * channel.ranks * channel.packetSlots;
}

__host__ __device__ inline u64 packetOffset(
    const Channel& channel, u32 section, u32 lane, u32 parity, u32 sender) {
  return flagBytes(channel) + section * packetSectionBytes(channel) +
         u64(kPacketBytes) * channel.packetSlots *
             ((u64(lane) * 2 + parity) * channel.ranks + sender);
}

__host__ __device__ inline u64 chunkSectionBytes(const Channel& channel) {
  return u64(kChunkSlots) * channel.lanes * channel.ranks * channel.chunkBytes;
}

__host__ __device__ inline u64 chunkOffset(
    const Channel& channel, u32 section, u32 lane, u32 slot, u32 sender) {
  return flagBytes(channel) + kPacketSections * packetSectionBytes(channel) +
         section * chunkSectionBytes(channel) +
         u64(channel.chunkBytes) *
             ((u64(lane) * kChunkSlots + slot) * channel.ranks + sender);
}

__host__ __device__ inline u64 fullOffset(
    const Channel& channel, u32 section, u32 lane, u32 parity, u32 sender) {
  return flagBytes(channel) + kPacketSections * packetSectionBytes(channel) +
         kChunkSections * chunkSectionBytes(channel) +
         u64(kPacketBytes) * channel.fullSlots *
             (((u64(section) * channel.lanes + lane) * 2 + parity) * channel.ranks + sender);
}

__host__ __device__ inline u64 areaBytes(const Channel& channel) {
  return fullOffset(channel, kFullSections, 0, 0, 0);
}

}  // namespace tutti
