// Small reductions by packets: data, and what tells that it is there, in one access; no barrier, no fence.
#pragma once

#include "elements.cuh"
#include "patience.cuh"

namespace tutti {

// Once per so many calls of a lane, slots forget sequence numbers that would come again when 32 bits wrap.
constexpr u32 kScrubPeriod = 1u << 30;

// kMost: the most ranks, 4 or 8; what 4 ranks do not need costs time in a kernel of 3 microseconds.
// kUnequal: a reduce-scatter of parts of unequal size.
template <class T, bool kAdds, bool kUnequal, u32 kMost>
struct PacketReduction {
  static constexpr u32 kSize = sizeof(typename Element<T>::Bits);
  static constexpr bool kFull = kAdds && !Element<T>::kInteger;
  // If not full: three words of data and one of sequence number; of elements that three words would cut: two words.
  static constexpr u32 kWords = kFull ? 4 : kSize == 8 ? 2 : 3;
  static constexpr u32 kPayload = 4 * kWords;
  static constexpr u32 kAlignment = kSize == 8 ? 8 : 4;
  using F = Fold<T, kAdds, kWords>;
  using W = Words<kWords>;

  const Channel& channel;
  const ReduceCall& call;
  const u32 lane;
  const u32 rank;
  const u32 ranks;
  const u32 first;   // this thread's first packet
  const u32 stride;  // and how far its next one is
  const u32 sequence;  // of full packets only the parity is used
  const u32 slotBytes;
  Patience patience;

  __device__ __forceinline__ PacketReduction(const Channel& channel, const ReduceCall& call)
      : channel(channel),
        call(call),
        lane(laneOf(channel)),
        rank(channel.rank),
        ranks(channel.ranks),
        first(lane * blockDim.x + threadIdx.x),
        stride(lanesOf(channel) * blockDim.x),
        sequence(kFull ? channel.state[lane].fullPackets
                       : u32(channel.state[lane].packets) + 1),
        slotBytes(kPacketBytes * (kFull ? channel.fullSlots : channel.packetSlots)),
        patience(channel.control, call.timeoutNs) {}

  // Up to which end a packet of these bytes can be read and written by words: an end that cuts a word is not.
  static __device__ __forceinline__ u32 wordEnd(const char* memory, u32 stepBytes, u32 bytes) {
    const bool aligned = ((u32(reinterpret_cast<u64>(memory)) | stepBytes) & (kAlignment - 1)) == 0;
    return !aligned ? 0 : (bytes & 3) == 0 ? ~0u : bytes & ~3u;
  }

  // The packet at an offset of memory that ends after so many bytes.
  static __device__ __forceinline__ W load(const char* memory, u32 offset, u32 bytes, u32 wordEnd) {
    const char* at = memory + offset;
    W words = {};
    if (kFull && isAligned(at, kPacketBytes) && offset + kPacketBytes <= bytes) {
      if constexpr (kFull) {
        words = wordsOf(*reinterpret_cast<const uint4*>(at));
      }
    } else if (offset + kPayload <= wordEnd) {
      if constexpr (kSize == 8 && !kFull) {
        if (offset < bytes) {
          const uint2 both = *reinterpret_cast<const uint2*>(at);
          words.word[0] = both.x;
          words.word[1] = both.y;
        }
      } else {
#pragma unroll
        for (u32 w = 0; w < kWords; w++) {
          if (offset + 4 * w < bytes) {
            words.word[w] = reinterpret_cast<const u32*>(at)[w];
          }
        }
      }
    } else if (offset < bytes) {
      const Range<kSize> range(memory, bytes);
      const ulonglong2 bits = gather(at, range.remaining(offset, kPayload), range.step());
      words.word[0] = u32(bits.x);
      words.word[1] = u32(bits.x >> 32);
      if constexpr (kWords > 2) {
        words.word[2] = u32(bits.y);
      }
      if constexpr (kWords > 3) {
        words.word[3] = u32(bits.y >> 32);
      }
    }
    return words;
  }

  static __device__ __forceinline__ void store(char* memory, u32 offset, u32 bytes, u32 wordEnd,
                                               const W& words) {
    char* at = memory + offset;
    if (kFull && isAligned(at, kPacketBytes) && offset + kPacketBytes <= bytes) {
      if constexpr (kFull) {
        *reinterpret_cast<uint4*>(at) = vectorOf(words);
      }
    } else if (offset + kPayload <= wordEnd) {
      if constexpr (kSize == 8 && !kFull) {
        if (offset < bytes) {
          *reinterpret_cast<uint2*>(at) = make_uint2(words.word[0], words.word[1]);
        }
      } else {
#pragma unroll
        for (u32 w = 0; w < kWords; w++) {
          if (offset + 4 * w < bytes) {
            reinterpret_cast<u32*>(at)[w] = words.word[w];
          }
        }
      }
    } else if (offset < bytes) {
      u64 high = 0;
      if constexpr (kWords > 2) {
        high = words.word[2];
      }
      if constexpr (kWords > 3) {
        high |= u64(words.word[3]) << 32;
      }
      const Range<kSize> range(memory, bytes);
      spread(at, make_ulonglong2(u64(words.word[0]) | u64(words.word[1]) << 32, high),
             range.remaining(offset, kPayload), range.step());
    }
  }

  __device__ __forceinline__ W contribution(const W& words) const {
    return fit(F::contribution(words, call.op, call.factor));
  }

  // What can be sent: not what an empty place has.
  static __device__ __forceinline__ W fit(W words) {
    if constexpr (kFull) {
      words.word[3] = words.word[3] == kEmpty ? kOtherNan : words.word[3];
    }
    return words;
  }

  __device__ __forceinline__ u32 next(u32 peer) const { return peer + 1 == ranks ? 0 : peer + 1; }

  __device__ __forceinline__ void send(u32 peer, u64 to, const W& words) const {
    u32 third = 0;
    u32 fourth = sequence;
    if constexpr (kWords > 2) {
      third = words.word[2];
    }
    if constexpr (kFull) {
      fourth = words.word[3] ^ kEmpty;
    }
    storeWords(channel.areas[peer] + to, make_uint4(words.word[0], words.word[1], third, fourth));
  }

  __device__ __forceinline__ void sendAll(u64 to, const W& words) const {
    u32 peer = rank;
#pragma unroll
    for (u32 step = 1; step < kMost; step++) {
      if (step < ranks) {
        peer = next(peer);
        send(peer, to, words);
      }
    }
  }

  // Where a section's slots of this call begin in every rank's area, one for each sender.
  __device__ __forceinline__ u64 slots(u32 section) const {
    return kFull ? fullOffset(channel, section, lane, sequence & 1, 0)
                 : packetOffset(channel, section, lane, sequence & 1, 0);
  }

  __device__ __forceinline__ u64 ownSlot(u32 section) const {
    return slots(section) + slotBytes * rank;
  }

  // Polls one place of every peer's slot until all carry the sequence number, or are not empty; empties these. own: what this
  // rank has.
  __device__ __forceinline__ bool collect(char* from, u32 place, const W& own, W (&all)[kMost]) {
    char* address = from + kPacketBytes * place;
#pragma unroll
    for (u32 r = 0; r < kMost; r++) {
      all[r] = own;
    }
    u32 missing = ((1u << ranks) - 1) & ~(1u << rank);
    while (true) {
      uint4 packets[kMost];
#pragma unroll
      for (u32 r = 0; r < kMost; r++) {
        if (missing >> r & 1) {
          packets[r] = loadWords(address + r * slotBytes);
        }
      }
#pragma unroll
      for (u32 r = 0; r < kMost; r++) {
        if ((missing >> r & 1) && (kFull ? packets[r].w != 0 : packets[r].w == sequence)) {
          all[r].word[0] = packets[r].x;
          all[r].word[1] = packets[r].y;
          if constexpr (kWords > 2) {
            all[r].word[2] = packets[r].z;
          }
          if constexpr (kFull) {
            all[r].word[3] = packets[r].w ^ kEmpty;
            storePacket(address + r * slotBytes, 0, 0);
          }
          missing &= ~(1u << r);
        }
      }
      if (missing == 0) {
        return true;
      }
      if (patience.isOver(lane, __ffs(missing) - 1)) {
        return false;
      }
    }
  }

  // Before this lane sends anything of call k, nobody sends call k + 1, and all has been read of call k - 1, whose slots
  // k + 1 will use: they can be overwritten, with a number whose parity these slots never carry.
  __device__ __forceinline__ void scrub() const {
    if constexpr (!kFull) {
      if ((sequence & (kScrubPeriod - 1)) > 1) {
        return;
      }
#pragma unroll 1
      for (u32 section = kShot; section <= kSpread; section++) {
        char* from = channel.areas[rank] + packetOffset(channel, section, lane, (sequence + 1) & 1, 0);
#pragma unroll 1
        for (u32 i = threadIdx.x; i < ranks * channel.packetSlots; i += blockDim.x) {
          storePacket(from + kPacketBytes * i, 0, u64(sequence) << 32);
        }
      }
      __threadfence_system();
      __syncthreads();
    }
  }

  __device__ __forceinline__ void end() const {
    __syncthreads();
    if (threadIdx.x == 0) {
      if constexpr (kFull) {
        channel.state[lane].fullPackets++;
      } else {
        channel.state[lane].packets++;
      }
    }
  }

  // Every rank pushes all it has to every peer. out may be null: the rank takes part and keeps nothing.
  __device__ __forceinline__ void oneShot() {
    const u32 bytes = u32(call.bytes);
    const u32 packets = (bytes + kPayload - 1) / kPayload;
    const u64 to = ownSlot(kShot);
    const u32 inEnd = wordEnd(call.in, 0, bytes);
    scrub();
    W own = {};
    u32 place = threadIdx.x;
#pragma unroll 1
    for (u32 i = first; i < packets; i += stride, place += blockDim.x) {
      own = contribution(load(call.in, i * kPayload, bytes, inEnd));
      sendAll(to + kPacketBytes * place, own);
    }
    char* from = channel.areas[rank] + slots(kShot);
    place = threadIdx.x;
#pragma unroll 1
    for (u32 i = first; i < packets; i += stride, place += blockDim.x) {
      if (packets > stride) {
        own = contribution(load(call.in, i * kPayload, bytes, inEnd));
      }
      W all[kMost];
      if (!collect(from, place, own, all)) {
        return;
      }
      if (call.out != nullptr) {
        store(call.out, i * kPayload, bytes, wordEnd(call.out, 0, bytes),
              foldAll<T, kAdds>(all, ranks, call.op));
      }
    }
    end();
  }

  // The length of part r.
  __device__ __forceinline__ u32 partLength(u32 r, u32 bytes, u32 partBytes) const {
    if constexpr (kUnequal) {
      return u32(unequalBytes(call, r, ranks));
    }
    const u32 begin = r * partBytes;
    return begin >= bytes ? 0 : min(bytes - begin, partBytes);
  }

  __device__ __forceinline__ u32 partOffset(u32 r, u32 partBytes) const {
    return kUnequal ? u32(partBegin<true>(call, r)) : r * partBytes;
  }

  // A number with the lowest bits of all offsets of parts.
  __device__ __forceinline__ u32 partSteps(u32 partBytes) const {
    u32 steps = kUnequal ? 0 : partBytes;
    if constexpr (kUnequal) {
#pragma unroll 1
      for (u32 r = 1; r < ranks; r++) {
        steps |= u32(partBegin<true>(call, r));
      }
    }
    return steps;
  }

  // Every rank pushes part r to rank r, which reduces it and, if there are targets, pushes the result to every peer.
  __device__ __forceinline__ void twoShot() {
    const u32 bytes = u32(call.bytes);
    const u32 partBytes = u32(call.partBytes);
    const u32 packets = (partBytes + kPayload - 1) / kPayload;
    const bool spreads = !kUnequal && call.targets != 0;
    // Only the last part that has bytes can end within a word, if parts are made of words.
    const u32 steps = partSteps(partBytes);
    const u32 inEnd = wordEnd(call.in, steps, bytes) == ~0u ? ~0u : 0;
    const u32 outEnd = wordEnd(call.out, steps, bytes) == ~0u ? ~0u : 0;
    scrub();
    u64 to = ownSlot(kShot);
    u32 place = threadIdx.x;
#pragma unroll 1
    for (u32 i = first; i < packets; i += stride, place += blockDim.x) {
      W words[kMost];
      u32 peer = rank;
#pragma unroll
      for (u32 step = 1; step < kMost; step++) {
        if (step < ranks) {
          peer = next(peer);
          words[step] = load(call.in + partOffset(peer, partBytes), i * kPayload,
                             partLength(peer, bytes, partBytes), inEnd);
        }
      }
      peer = rank;
#pragma unroll
      for (u32 step = 1; step < kMost; step++) {
        if (step < ranks) {
          peer = next(peer);
          send(peer, to + kPacketBytes * place, contribution(words[step]));
        }
      }
    }

    const u32 ownLength = partLength(rank, bytes, partBytes);
    const char* in = call.in + partOffset(rank, partBytes);
    char* out = spreads ? call.out + rank * partBytes : call.out;
    char* from = channel.areas[rank] + slots(kShot);
    to = ownSlot(kSpread);
    place = threadIdx.x;
#pragma unroll 1
    for (u32 i = first; i < packets; i += stride, place += blockDim.x) {
      W all[kMost];
      const W own = contribution(load(in, i * kPayload, ownLength, inEnd));
      if (!collect(from, place, own, all)) {
        return;
      }
      const W result = fit(foldAll<T, kAdds>(all, ranks, call.op));
      if (spreads) {
        sendAll(to + kPacketBytes * place, result);
      }
      store(out, i * kPayload, ownLength, outEnd, result);
    }

    if (spreads) {
      from = channel.areas[rank] + slots(kSpread);
      place = threadIdx.x;
#pragma unroll 1
      for (u32 i = first; i < packets; i += stride, place += blockDim.x) {
        W all[kMost];
        if (!collect(from, place, W{}, all)) {
          return;
        }
#pragma unroll
        for (u32 r = 0; r < kMost; r++) {
          if (r < ranks && r != rank) {
            store(call.out + r * partBytes, i * kPayload, partLength(r, bytes, partBytes), outEnd,
                  all[r]);
          }
        }
      }
    }
    end();
  }
};

template <class T, bool kAdds>
__device__ __forceinline__ void reduceOneShot(const Channel& channel, const ReduceCall& call) {
  if constexpr (kAdds && !Element<T>::kInteger) {
    if (channel.ranks <= 4) {
      PacketReduction<T, kAdds, false, 4>(channel, call).oneShot();
      return;
    }
  }
  PacketReduction<T, kAdds, false, 8>(channel, call).oneShot();
}

template <class T, bool kAdds, bool kUnequal>
__device__ __forceinline__ void reduceTwoShot(const Channel& channel, const ReduceCall& call) {
  if constexpr (kAdds && !Element<T>::kInteger) {
    if (channel.ranks <= 4) {
      PacketReduction<T, kAdds, kUnequal, 4>(channel, call).twoShot();
      return;
    }
  }
  PacketReduction<T, kAdds, kUnequal, 8>(channel, call).twoShot();
}

}  // namespace tutti
