// Element types and what one element becomes with another. Half precisions accumulate in float32, small integers in 32 bits.
#pragma once

#include "memory.cuh"

namespace tutti {

struct Half {};
struct BFloat16 {};

template <class T>
struct Element;

template <>
struct Element<float> {
  using Bits = u32;
  using Acc = float;
  static constexpr bool kInteger = false;
  static __device__ __forceinline__ float widen(u32 bits) { return __uint_as_float(bits); }
  static __device__ __forceinline__ u32 narrow(float value) { return __float_as_uint(value); }
};

template <>
struct Element<double> {
  using Bits = u64;
  using Acc = double;
  static constexpr bool kInteger = false;
  static __device__ __forceinline__ double widen(u64 bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
  static __device__ __forceinline__ u64 narrow(double value) {
    return static_cast<u64>(__double_as_longlong(value));
  }
};

template <>
struct Element<Half> {
  using Bits = unsigned short;
  using Acc = float;
  static constexpr bool kInteger = false;
  static __device__ __forceinline__ float widen(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  static __device__ __forceinline__ unsigned short narrow(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
};

template <>
struct Element<BFloat16> {
  using Bits = unsigned short;
  using Acc = float;
  static constexpr bool kInteger = false;
  static __device__ __forceinline__ float widen(unsigned short bits) {
    return __uint_as_float(u32(bits) << 16);
  }
  static __device__ __forceinline__ unsigned short narrow(float value) {
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
  }
};

template <class T, class B, class A, class U>
struct IntegerElement {
  using Bits = B;
  using Acc = A;
  using Wrapping = U;
  static constexpr bool kInteger = true;
  static __device__ __forceinline__ A widen(B bits) { return static_cast<A>(static_cast<T>(bits)); }
  static __device__ __forceinline__ B narrow(A value) { return static_cast<B>(value); }
};

template <>
struct Element<signed char> : IntegerElement<signed char, unsigned char, int, u32> {};
template <>
struct Element<unsigned char> : IntegerElement<unsigned char, unsigned char, int, u32> {};
template <>
struct Element<int> : IntegerElement<int, u32, int, u32> {};
template <>
struct Element<long long> : IntegerElement<long long, u64, long long, u64> {};

// What one thread holds of the elements in a few words of 32 bits; only constant indexes, so it stays in registers.
template <u32 kWords>
struct Words {
  u32 word[kWords];
};

__device__ __forceinline__ Words<4> wordsOf(uint4 v) { return {{v.x, v.y, v.z, v.w}}; }

__device__ __forceinline__ uint4 vectorOf(const Words<4>& words) {
  return make_uint4(words.word[0], words.word[1], words.word[2], words.word[3]);
}

// Elements in kWords words. kAdds: SUM, AVG and PREMUL_SUM; else the other operators, told apart at run time.
template <class T, bool kAdds, u32 kWords>
struct Fold {
  using E = Element<T>;
  using Acc = typename E::Acc;
  using Bits = typename E::Bits;
  using W = Words<kWords>;
  static constexpr u32 kSize = sizeof(Bits);
  static constexpr u32 kCount = 4 * kWords / kSize;
  static_assert(kCount * kSize == 4 * kWords, "elements are whole");
  Acc acc[kCount];

  static __device__ __forceinline__ Acc element(const W& words, u32 i) {
    if constexpr (kSize == 8) {
      return E::widen(u64(words.word[2 * i]) | u64(words.word[2 * i + 1]) << 32);
    } else {
      return E::widen(static_cast<Bits>(words.word[i * kSize / 4] >> (8 * (i * kSize % 4))));
    }
  }

  static __device__ __forceinline__ void put(W& words, u32 i, Acc value) {
    const Bits bits = E::narrow(value);
    if constexpr (kSize == 8) {
      words.word[2 * i] = u32(bits);
      words.word[2 * i + 1] = u32(bits >> 32);
    } else {
      words.word[i * kSize / 4] |= u32(bits) << (8 * (i * kSize % 4));
    }
  }

  __device__ __forceinline__ void start(const W& words) {
#pragma unroll
    for (u32 i = 0; i < kCount; i++) {
      acc[i] = element(words, i);
    }
  }

  template <class F>
  __device__ __forceinline__ void each(const W& words, F f) {
#pragma unroll
    for (u32 i = 0; i < kCount; i++) {
      acc[i] = f(acc[i], element(words, i));
    }
  }

  static __device__ __forceinline__ Acc times(Acc a, Acc b) {
    if constexpr (E::kInteger) {
      using Wrapping = typename E::Wrapping;
      return static_cast<Acc>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
    } else {
      return a * b;
    }
  }

  static __device__ __forceinline__ Acc plus(Acc a, Acc b) {
    if constexpr (E::kInteger) {
      using Wrapping = typename E::Wrapping;
      return static_cast<Acc>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
    } else {
      return a + b;
    }
  }

  // NaN wins, and -0 is less than +0.
  static __device__ __forceinline__ Acc lesser(Acc a, Acc b) {
    if constexpr (E::kInteger) {
      return b < a ? b : a;
    } else if constexpr (sizeof(Acc) == 4) {
      float value;
      asm("min.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
      return value;
    } else {
      const Acc less = b < a || b != b ? b : a;
      return a == b ? Element<double>::widen(Element<double>::narrow(a) | Element<double>::narrow(b)) : less;
    }
  }

  static __device__ __forceinline__ Acc greater(Acc a, Acc b) {
    if constexpr (E::kInteger) {
      return b > a ? b : a;
    } else if constexpr (sizeof(Acc) == 4) {
      float value;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(value) : "f"(a), "f"(b));
      return value;
    } else {
      const Acc more = b > a || b != b ? b : a;
      return a == b ? Element<double>::widen(Element<double>::narrow(a) & Element<double>::narrow(b)) : more;
    }
  }

  __device__ __forceinline__ void add(const W& words, u32 op) {
    if constexpr (kAdds) {
      each(words, plus);
    } else {
      switch (op) {
        case kProduct:
          each(words, times);
          break;
        case kMin:
          each(words, lesser);
          break;
        case kMax:
          each(words, greater);
          break;
        default:
          if constexpr (E::kInteger) {
            if (op == kBand) {
              each(words, [](Acc a, Acc b) { return a & b; });
            } else if (op == kBor) {
              each(words, [](Acc a, Acc b) { return a | b; });
            } else {
              each(words, [](Acc a, Acc b) { return a ^ b; });
            }
          }
      }
    }
  }

  __device__ __forceinline__ W finish() const {
    W words = {};
#pragma unroll
    for (u32 i = 0; i < kCount; i++) {
      put(words, i, acc[i]);
    }
    return words;
  }

  // What a rank contributes: its elements, times its factor for PREMUL_SUM, rounded to the element's type.
  static __device__ __forceinline__ W contribution(const W& words, u32 op, double factor) {
    if constexpr (kAdds && !E::kInteger) {
      if (op == kPremulSum) {
        W scaled = {};
#pragma unroll
        for (u32 i = 0; i < kCount; i++) {
          put(scaled, i, element(words, i) * static_cast<Acc>(factor));
        }
        return scaled;
      }
    }
    return words;
  }
};

// A mean, whose sum does not overflow; apart from Fold, so that sums need no more registers than they have.
template <class T, u32 kWords, bool kWide = Element<T>::kInteger && sizeof(typename Element<T>::Bits) >= 4>
struct MeanFold {
  using F = Fold<T, true, kWords>;
  using E = Element<T>;
  using Acc = typename E::Acc;
  using W = Words<kWords>;

  Acc acc[F::kCount] = {};

  // Real elements are added times a power of two; see MeanScale of the host.
  static __device__ __forceinline__ Acc scaleOf(u32 ranks) {
    return ranks == 1 ? Acc(1) : ranks == 2 ? Acc(0.5) : ranks <= 4 ? Acc(0.25) : Acc(0.125);
  }

  __device__ __forceinline__ void add(const W& words, bool first, u32 ranks) {
#pragma unroll
    for (u32 i = 0; i < F::kCount; i++) {
      const Acc value = F::element(words, i);
      if constexpr (E::kInteger) {
        acc[i] += value;
      } else {
        // The first is not added to zero, which would take the sign of a -0.
        acc[i] = first ? value * scaleOf(ranks) : value * scaleOf(ranks) + acc[i];
      }
    }
  }

  static __device__ __forceinline__ Acc divided(Acc value, u32 ranks) {
    if constexpr (E::kInteger) {
      // Exact for the sum of up to 8 bytes, and a sixth of a division's instructions.
      const int quotient = static_cast<int>(u32(value < 0 ? -value : value) * (65536 / ranks + 1)) >> 16;
      return value < 0 ? -quotient : quotient;
    } else if constexpr (F::kSize == 2) {
      // A quotient, corrected once, as a division would be most of the kernel; what is not finite has no correction.
      const float divisor = static_cast<float>(ranks) * scaleOf(ranks);
      const float inverse = 1.0f / divisor;
      const float quotient = value * inverse;
      const float corrected = fmaf(fmaf(-quotient, divisor, value), inverse, quotient);
      return corrected == corrected ? corrected : quotient;
    } else {
      return value / (static_cast<Acc>(ranks) * scaleOf(ranks));
    }
  }

  __device__ __forceinline__ W finish(u32 ranks) const {
    W words = {};
#pragma unroll
    for (u32 i = 0; i < F::kCount; i++) {
      F::put(words, i, divided(acc[i], ranks));
    }
    return words;
  }
};

// Integers of 4 or 8 bytes: a sum of the upper and one of the lower half of the bits.
template <class T, u32 kWords>
struct MeanFold<T, kWords, true> {
  using F = Fold<T, true, kWords>;
  using W = Words<kWords>;
  static constexpr u32 kHalf = 4 * F::kSize;

  long long high[F::kCount] = {};
  u64 low[F::kCount] = {};

  __device__ __forceinline__ void add(const W& words, bool, u32) {
#pragma unroll
    for (u32 i = 0; i < F::kCount; i++) {
      const long long value = F::element(words, i);
      high[i] += value >> kHalf;
      low[i] += u64(value) & ((u64(1) << kHalf) - 1);
    }
  }

  // Truncated toward zero.
  __device__ __forceinline__ W finish(u32 ranks) const {
    W words = {};
    const int divisor = static_cast<int>(ranks);
#pragma unroll
    for (u32 i = 0; i < F::kCount; i++) {
      const long long upper = high[i] + static_cast<long long>(low[i] >> kHalf);
      long long quotient = upper / divisor;
      int remainder = static_cast<int>(upper % divisor);
      if (remainder < 0) {
        quotient--;
        remainder += divisor;
      }
      const u64 rest = u64(remainder) << kHalf | (low[i] & ((u64(1) << kHalf) - 1));
      u64 floor = (u64(quotient) << kHalf) + rest / ranks;
      floor += upper < 0 && rest % ranks != 0 ? 1 : 0;
      F::put(words, i, static_cast<typename F::Acc>(floor));
    }
    return words;
  }
};

// An element of an array that stays in registers, which no run-time index could.
template <u32 kWords, u32 kMost>
__device__ __forceinline__ Words<kWords> choose(const Words<kWords> (&all)[kMost], u32 r) {
  Words<kWords> chosen = all[0];
#pragma unroll
  for (u32 c = 1; c < kMost; c++) {
#pragma unroll
    for (u32 w = 0; w < kWords; w++) {
      chosen.word[w] = r == c ? all[c].word[w] : chosen.word[w];
    }
  }
  return chosen;
}

// The reduction of what all ranks have, in rank order, so that all ranks compute the same bits.
template <class T, bool kAdds, u32 kWords, u32 kMost>
__device__ __forceinline__ Words<kWords> foldAll(
    const Words<kWords> (&all)[kMost], u32 ranks, u32 op) {
  if constexpr (kAdds) {
    if (op == kAvg) {
      MeanFold<T, kWords> mean;
#pragma unroll
      for (u32 r = 0; r < kMost; r++) {
        if (r < ranks) {
          mean.add(all[r], r == 0, ranks);
        }
      }
      return mean.finish(ranks);
    }
  }
  Fold<T, kAdds, kWords> fold;
  fold.start(all[0]);
  if constexpr (kAdds) {
#pragma unroll
    for (u32 r = 1; r < kMost; r++) {
      if (r < ranks) {
        fold.add(all[r], op);
      }
    }
  } else {
    // Rolled: a fraction of the code.
#pragma unroll 1
    for (u32 r = 1; r < ranks; r++) {
      fold.add(choose(all, r), op);
    }
  }
  return fold.finish();
}

}  // namespace tutti
