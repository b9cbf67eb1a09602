// Loads and stores with an order or a width that C++ cannot say.
#pragma once

#include "protocol.cuh"

namespace tutti {

struct Packet {
  u64 data;
  u64 sequence;
};

// A packet is one access of 128 bits (PTX: b128, sm_70), so data and sequence number arrive together. Messages have a
// sequence number of 64 bits, reductions one of 32 and more data.
__device__ __forceinline__ Packet loadPacket(const char* address) {
  Packet packet;
  asm volatile(
      "{\n\t.reg .b128 both;\n\t"
      "ld.relaxed.sys.global.b128 both, [%2];\n\t"
      "mov.b128 {%0, %1}, both;\n\t}"
      : "=l"(packet.data), "=l"(packet.sequence)
      : "l"(address));
  return packet;
}

__device__ __forceinline__ void storePacket(char* address, u64 data, u64 sequence) {
  asm volatile(
      "{\n\t.reg .b128 both;\n\t"
      "mov.b128 both, {%1, %2};\n\t"
      "st.relaxed.sys.global.b128 [%0], both;\n\t}" ::"l"(address),
      "l"(data),
      "l"(sequence));
}

__device__ __forceinline__ uint4 loadWords(const char* address) {
  const Packet packet = loadPacket(address);
  return make_uint4(u32(packet.data), u32(packet.data >> 32), u32(packet.sequence),
                    u32(packet.sequence >> 32));
}

__device__ __forceinline__ void storeWords(char* address, uint4 words) {
  storePacket(address, u64(words.x) | u64(words.y) << 32, u64(words.z) | u64(words.w) << 32);
}

__device__ __forceinline__ u32 loadRelaxed(const u32* address) {
  u32 value;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}

__device__ __forceinline__ u64 loadRelaxed(const u64* address) {
  u64 value;
  asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(value) : "l"(address));
  return value;
}

__device__ __forceinline__ void storeRelaxed(u64* address, u64 value) {
  asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

__device__ __forceinline__ void storeRelaxed(u32* address, u32 value) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

__device__ __forceinline__ u32 loadAcquire(const u32* address) {
  u32 value;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

__device__ __forceinline__ void storeRelease(u32* address, u32 value) {
  asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

__device__ __forceinline__ u64 nanoTime() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ __forceinline__ bool isAligned(const void* address, u32 bytes) {
  return (reinterpret_cast<u64>(address) & (bytes - 1)) == 0;
}

// The slow path of all kernels, called and not inlined: up to 16 bytes from any address, in steps of 1, 2, 4 or 8.
static __device__ __noinline__ ulonglong2 gather(const char* address, u32 bytes, u32 step) {
  u64 halves[2] = {0, 0};
#pragma unroll
  for (u32 half = 0; half < 2; half++) {
#pragma unroll 1
    for (u32 i = half * 8; i < bytes && i < half * 8 + 8; i += step) {
      const char* at = address + i;
      const u64 bits = step == 1   ? *reinterpret_cast<const unsigned char*>(at)
                       : step == 2 ? *reinterpret_cast<const unsigned short*>(at)
                       : step == 4 ? *reinterpret_cast<const u32*>(at)
                                   : *reinterpret_cast<const u64*>(at);
      halves[half] |= bits << (8 * (i & 7));
    }
  }
  return make_ulonglong2(halves[0], halves[1]);
}

static __device__ __noinline__ void spread(char* address, ulonglong2 bits, u32 bytes, u32 step) {
#pragma unroll 1
  for (u32 i = 0; i < bytes; i += step) {
    const u64 shifted = (i < 8 ? bits.x : bits.y) >> (8 * (i & 7));
    char* at = address + i;
    if (step == 1) {
      *reinterpret_cast<unsigned char*>(at) = static_cast<unsigned char>(shifted);
    } else if (step == 2) {
      *reinterpret_cast<unsigned short*>(at) = static_cast<unsigned short>(shifted);
    } else if (step == 4) {
      *reinterpret_cast<u32*>(at) = static_cast<u32>(shifted);
    } else {
      *reinterpret_cast<u64*>(at) = shifted;
    }
  }
}

// A range of a caller's memory: any address, any length that is a multiple of the element's size.
template <u32 kElement>
struct Range {
  char* base;
  u64 bytes;

  __device__ __forceinline__ Range(const char* base, u64 bytes)
      : base(const_cast<char*>(base)), bytes(bytes) {}

  __device__ __forceinline__ u64 load8(u64 offset) const {
    return isAligned(base, 8) && offset + 8 <= bytes
               ? *reinterpret_cast<const u64*>(base + offset)
               : gather(base + offset, remaining(offset, 8), step()).x;
  }

  __device__ __forceinline__ void store8(u64 offset, u64 bits) const {
    if (isAligned(base, 8) && offset + 8 <= bytes) {
      *reinterpret_cast<u64*>(base + offset) = bits;
    } else {
      spread(base + offset, make_ulonglong2(bits, 0), remaining(offset, 8), step());
    }
  }

  __device__ __forceinline__ uint4 load16(u64 offset) const {
    if (isAligned(base, 16) && offset + 16 <= bytes) {
      return *reinterpret_cast<const uint4*>(base + offset);
    }
    const ulonglong2 bits = gather(base + offset, remaining(offset, 16), step());
    return make_uint4(u32(bits.x), u32(bits.x >> 32), u32(bits.y), u32(bits.y >> 32));
  }

  __device__ __forceinline__ void store16(u64 offset, uint4 v) const {
    if (isAligned(base, 16) && offset + 16 <= bytes) {
      *reinterpret_cast<uint4*>(base + offset) = v;
    } else {
      spread(base + offset, make_ulonglong2(u64(v.x) | u64(v.y) << 32, u64(v.z) | u64(v.w) << 32),
             remaining(offset, 16), step());
    }
  }

  __device__ __forceinline__ u32 remaining(u64 offset, u32 most) const {
    return offset >= bytes ? 0 : bytes - offset < most ? u32(bytes - offset) : most;
  }

  __device__ __forceinline__ u32 step() const { return isAligned(base, kElement) ? kElement : 1; }
};

}  // namespace tutti
