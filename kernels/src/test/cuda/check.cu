// Checks every kernel x type x operator x odd sizes and alignments against a float64 reference.
// usage: check IMAGE RANKS [quick]; ranks share GPUs where there are fewer. Prints one JSON line and exits 0, or what is wrong.
#include <cuda_fp16.h>

#include <cmath>
#include <random>

#include "world.h"

namespace {

struct Type {
  const char* label;
  unsigned size;
  bool integer;
  bool isSigned;
  double epsilon;
};

const Type kTypes[] = {{"f32", 4, false, true, 1.2e-7}, {"f64", 8, false, true, 2.3e-16},
                       {"f16", 2, false, true, 9.8e-4}, {"bf16", 2, false, true, 7.9e-3},
                       {"i8", 1, true, true, 0},        {"u8", 1, true, false, 0},
                       {"i32", 4, true, true, 0},       {"i64", 8, true, true, 0}};

const char* kOps[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"};

float bf16ToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t floatToBf16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, 4);
  return uint16_t((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
}

double realAt(const Type& type, const char* data, size_t i) {
  const char* at = data + i * type.size;
  switch (type.label[0]) {
    case 'b': {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return bf16ToFloat(bits);
    }
    default:
      if (type.size == 2) {
        __half value;
        std::memcpy(&value, at, 2);
        return __half2float(value);
      }
      if (type.size == 4) {
        float value;
        std::memcpy(&value, at, 4);
        return value;
      }
      double value;
      std::memcpy(&value, at, 8);
      return value;
  }
}

void putReal(const Type& type, char* data, size_t i, double value) {
  char* at = data + i * type.size;
  if (type.label[0] == 'b') {
    uint16_t bits = floatToBf16(float(value));
    std::memcpy(at, &bits, 2);
  } else if (type.size == 2) {
    __half half = __float2half(float(value));
    std::memcpy(at, &half, 2);
  } else if (type.size == 4) {
    float single = float(value);
    std::memcpy(at, &single, 4);
  } else {
    std::memcpy(at, &value, 8);
  }
}

long long narrowInteger(const Type& type, unsigned long long bits) {
  switch (type.size) {
    case 1:
      return type.isSigned ? (long long)(signed char)bits : (long long)(unsigned char)bits;
    case 4:
      return (int)bits;
    default:
      return (long long)bits;
  }
}

long long integerAt(const Type& type, const char* data, size_t i) {
  unsigned long long bits = 0;
  std::memcpy(&bits, data + i * type.size, type.size);
  return narrowInteger(type, bits);
}

long long foldIntegers(uint32_t op, long long a, long long b) {
  switch (op) {
    case tutti::kProduct:
      return (long long)((unsigned long long)a * (unsigned long long)b);
    case tutti::kMin:
      return b < a ? b : a;
    case tutti::kMax:
      return b > a ? b : a;
    case tutti::kBand:
      return a & b;
    case tutti::kBor:
      return a | b;
    case tutti::kBxor:
      return a ^ b;
    default:
      return (long long)((unsigned long long)a + (unsigned long long)b);
  }
}

long double foldReals(uint32_t op, long double a, long double b) {
  switch (op) {
    case tutti::kProduct:
      return a * b;
    case tutti::kMin:
      return b < a || std::isnan(b) ? b : a;
    case tutti::kMax:
      return b > a || std::isnan(b) ? b : a;
    default:
      return a + b;
  }
}

double limitOf(const Type& type) {
  return type.size == 8 ? 1.7e308 : type.size == 4 ? 3.4e38 : type.epsilon > 0.005 ? 3.38e38 : 65000;
}

constexpr size_t kGuard = 64;
long cases = 0;
bool quick = false;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::exit(1);
}

// One buffer per rank on the host with guards, and the same in device memory.
struct Buffers {
  World& world;
  std::vector<char*>& device;
  size_t offset;
  size_t bytes;
  std::vector<std::vector<char>> host;

  Buffers(World& world, std::vector<char*>& device, size_t offset, size_t bytes)
      : world(world), device(device), offset(offset), bytes(bytes), host(world.ranks) {
    if (kGuard + offset + bytes + kGuard > world.userBytes) fail("buffer too small");
    for (auto& memory : host) memory.assign(kGuard + offset + bytes + kGuard, char(0x5a));
  }

  char* at(int rank) { return device[rank] + kGuard + offset; }
  char* hostAt(int rank) { return host[rank].data() + kGuard + offset; }

  void upload() {
    for (int r = 0; r < world.ranks; r++) {
      CHECK(cudaMemcpyAsync(device[r], host[r].data(), host[r].size(), cudaMemcpyDefault,
                            world.streams[r]));
    }
    world.sync();
  }

  void download(const std::string& name) {
    world.sync();
    if (world.status() != 0) fail(name + ": status " + std::to_string(world.status()));
    for (int r = 0; r < world.ranks; r++) {
      CHECK(cudaMemcpy(host[r].data(), device[r], host[r].size(), cudaMemcpyDefault));
      for (size_t i = 0; i < kGuard + offset; i++) {
        if (host[r][i] != 0x5a) fail(name + ": wrote before the buffer");
      }
      for (size_t i = kGuard + offset + bytes; i < host[r].size(); i++) {
        if (host[r][i] != 0x5a) fail(name + ": wrote behind the buffer");
      }
    }
  }
};

std::mt19937_64 generator(7);

void fill(const Type& type, uint32_t op, Buffers& buffers, size_t count) {
  for (int r = 0; r < buffers.world.ranks; r++) {
    for (size_t i = 0; i < count; i++) {
      if (type.integer) {
        unsigned long long bits = generator();
        std::memcpy(buffers.hostAt(r) + i * type.size, &bits, type.size);
      } else {
        double unit = double(generator() >> 11) / 9007199254740992.0;
        double value = op == tutti::kProduct ? 0.5 + unit : unit * 4 - 2;
        // Sums that overflow although their means do not, and NaN on some ranks.
        if (op == tutti::kAvg && i % 5 == 0) value = limitOf(type) * (unit < 0.2 ? -1 : 1 - unit / 8);
        if ((op == tutti::kMin || op == tutti::kMax) && i % 5 == 0 && unit < 0.3) value = NAN;
        putReal(type, buffers.hostAt(r), i, value);
      }
    }
  }
}

double factorOf(int rank) { return 0.5 + rank; }

// Compares element `at` of `data` with the reduction of element `element` of all ranks' inputs.
void compare(const Type& type, uint32_t op, const std::vector<std::vector<char>>& inputs,
             size_t element, const char* data, size_t at, const std::string& name) {
  const int ranks = int(inputs.size());
  if (type.integer) {
    long long expected = integerAt(type, inputs[0].data(), element);
    for (int r = 1; r < ranks; r++) {
      expected = foldIntegers(op, expected, integerAt(type, inputs[r].data(), element));
    }
    expected = narrowInteger(type, expected);
    if (op == tutti::kAvg) {
      __int128 sum = 0;
      for (const auto& input : inputs) sum += integerAt(type, input.data(), element);
      expected = (long long)(sum / ranks);
    }
    if (integerAt(type, data, at) != expected) {
      fail(name + ": element " + std::to_string(element) + " is " +
           std::to_string(integerAt(type, data, at)) + ", expected " + std::to_string(expected));
    }
    return;
  }
  long double expected = 0;
  long double magnitude = 0;
  for (int r = 0; r < ranks; r++) {
    double value = realAt(type, inputs[r].data(), element);
    if (op == tutti::kPremulSum) value *= factorOf(r);
    magnitude += std::fabs(value);
    expected = r == 0 ? value : foldReals(op, expected, value);
  }
  if (op == tutti::kAvg) {
    expected /= ranks;
    magnitude /= ranks;
  }
  if (op == tutti::kProduct) magnitude = std::fabs(expected);
  if (op == tutti::kMin || op == tutti::kMax) magnitude = 0;
  // Accumulated in float32 at least: the last rounding counts for halves.
  const double found = realAt(type, data, at);
  const double inner = type.size == 8 ? 2.3e-16 : 1.2e-7;
  long double tolerance = std::fabs(expected) * type.epsilon / 2 + magnitude * inner * ranks;
  if (op == tutti::kPremulSum) tolerance += magnitude * type.epsilon / 2;
  if (type.size == 2) tolerance += 6e-8;
  const bool same = std::isnan(expected) ? std::isnan(found) : std::fabs(found - expected) <= tolerance;
  if (!same) {
    fail(name + ": element " + std::to_string(element) + " is " + std::to_string(found) +
         ", expected " + std::to_string(expected));
  }
}

std::vector<std::vector<char>> inputsOf(Buffers& buffers) {
  std::vector<std::vector<char>> inputs(buffers.world.ranks);
  for (int r = 0; r < buffers.world.ranks; r++) {
    inputs[r].assign(buffers.hostAt(r), buffers.hostAt(r) + buffers.bytes);
  }
  return inputs;
}

bool adds(uint32_t op) {
  return op == tutti::kSum || op == tutti::kAvg || op == tutti::kPremulSum;
}

std::string kernelName(const std::string& what, const Type& type, uint32_t op) {
  return "tutti_" + what + "_" + type.label + (adds(op) ? "_sum" : "_other");
}

enum class Kind { kOneShot, kTwoShot, kChunks, kReduce, kScatter, kScatterChunks };

void reduction(World& world, Kind kind, const Type& type, uint32_t op, size_t count,
               unsigned inShift, unsigned outShift, bool inPlace, Launch shape, unsigned sharing = 0) {
  const int ranks = world.ranks;
  const bool scatters = kind == Kind::kScatter || kind == Kind::kScatterChunks;
  const char* what = kind == Kind::kOneShot                             ? "one_shot"
                     : kind == Kind::kTwoShot || kind == Kind::kScatter ? "two_shot"
                                                                        : "chunks";
  const std::string name = kernelName(what, type, op) + " kind " + std::to_string(int(kind)) + " " +
                           kOps[op] + " count " + std::to_string(count) + " shifts " +
                           std::to_string(inShift) + "," + std::to_string(outShift) +
                           (inPlace ? " in place" : "") + " sharing " + std::to_string(sharing) + " ranks " + std::to_string(ranks) +
                           " grid " + std::to_string(shape.grid);
  const size_t total = scatters ? count * ranks : count;
  Buffers in(world, world.in, inShift, total * type.size);
  Buffers out(world, world.out, outShift, count * type.size);
  fill(type, op, in, total);
  in.upload();
  out.upload();
  const auto inputs = inputsOf(in);
  const int root = int(count % ranks);
  for (int r = 0; r < ranks; r++) {
    tutti::ReduceCall call =
        reduceCall(world, in.at(r), inPlace ? in.at(r) : out.at(r), total * type.size, op);
    call.factor = factorOf(r);
    if (scatters) {
      call.partBytes = count * type.size;
      call.targets = 0;
    }
    if (kind == Kind::kReduce) call.targets = 1u << root;
    if (kind == Kind::kChunks || kind == Kind::kReduce || kind == Kind::kScatterChunks) {
      call.chunk = 2048;
    }
    if (sharing >> r & 1) {
      // Ranks from 4 on have another memory.
      for (int p = 0; p < ranks; p++) call.shared[p] = uint64_t(call.out) + (r < 4 ? 1 : 15);
    }
    world.collective(kernelName(what, type, op), r, shape, call);
  }
  Buffers& result = inPlace ? in : out;
  result.download(name);
  for (int r = 0; r < ranks; r++) {
    if (kind == Kind::kReduce && r != root) continue;
    for (size_t i = 0; i < count; i++) {
      compare(type, op, inputs, scatters ? r * count + i : i, result.hostAt(r), i,
              name + " rank " + std::to_string(r));
    }
    if (!scatters && kind != Kind::kReduce &&
        std::memcmp(result.hostAt(r), result.hostAt(0), count * type.size) != 0) {
      fail(name + ": ranks differ");
    }
  }
  cases++;
}

void reductions(World& world) {
  const std::vector<size_t> sizes =
      quick ? std::vector<size_t>{1, 1021} : std::vector<size_t>{1, 3, 64, 1021, 4096, 20011};
  for (const Type& type : kTypes) {
    for (uint32_t op = 0; op <= 8; op++) {
      const bool bitwise = op >= tutti::kBand && op <= tutti::kBxor;
      if ((bitwise && !type.integer) || (op == tutti::kPremulSum && type.integer)) continue;
      for (size_t count : sizes) {
        for (int variant = 0; variant < 4; variant++) {
          const unsigned inShift = variant == 1 ? type.size : variant == 2 ? 1 : 0;
          const unsigned outShift = variant == 1 ? 3 * type.size : variant == 2 ? 5 : 0;
          const bool inPlace = variant == 3;
          const Launch narrow = {2, 64};
          const size_t packets = (count * type.size + 7) / 8;
          const Launch wide = {unsigned(std::min<size_t>(16, packets / 512 + 1)), 512};
          for (Kind kind : {Kind::kOneShot, Kind::kTwoShot, Kind::kScatter}) {
            if (inPlace && kind == Kind::kScatter) continue;
            reduction(world, kind, type, op, count, inShift, outShift, inPlace,
                      packets <= 1024 ? narrow : Launch{16, 512});
            if (variant == 0) {
              reduction(world, kind, type, op, count, inShift, outShift, inPlace,
                        kind == Kind::kOneShot ? wide : Launch{16, 256});
            }
          }
          for (Kind kind : {Kind::kChunks, Kind::kReduce, Kind::kScatterChunks}) {
            if (inPlace && kind != Kind::kChunks) continue;
            reduction(world, kind, type, op, count, inShift, outShift, inPlace, {3, 128});
          }
          // Results straight into the memory of some ranks or of all.
          if ((variant == 0 || variant == 3) && count * type.size % 16 == 0) {
            for (unsigned sharing : {1u, 3u, 0xffu}) {
              reduction(world, Kind::kChunks, type, op, count, 0, 0, inPlace, {3, 128}, sharing);
              if (inPlace) continue;
              reduction(world, Kind::kReduce, type, op, count, 0, 0, false, {3, 128}, sharing);
            }
          }
        }
      }
    }
  }
}

// Parts that become shorter, of which the second is empty.
void unequal(World& world, bool twoShot, const Type& type, uint32_t op, size_t count, unsigned inShift,
             unsigned outShift, bool inPlace) {
  const int ranks = world.ranks;
  const std::string name = kernelName(twoShot ? "unequal_two_shot" : "unequal_chunks", type, op) + " " +
                           kOps[op] + " count " + std::to_string(count) + " shifts " +
                           std::to_string(inShift) + "," + std::to_string(outShift) +
                           (inPlace ? " in place" : "");
  std::vector<size_t> begins(ranks + 1);
  for (int r = 0; r < ranks; r++) begins[r + 1] = begins[r] + (r == 1 ? 0 : count - count * r / (10 * ranks));
  Buffers in(world, world.in, inShift, begins[ranks] * type.size);
  Buffers out(world, world.out, outShift, count * type.size);
  fill(type, op, in, begins[ranks]);
  in.upload();
  out.upload();
  const auto inputs = inputsOf(in);
  for (int r = 0; r < ranks; r++) {
    char* target = inPlace ? in.at(r) + begins[r] * type.size : out.at(r);
    tutti::ReduceCall call = reduceCall(world, in.at(r), target, begins[ranks] * type.size, op);
    call.factor = factorOf(r);
    call.partBytes = count * type.size;
    call.targets = 0;
    call.chunk = 2048;
    for (int p = 0; p < ranks; p++) call.shared[p] = begins[p] * type.size << 4;
    world.collective(kernelName(twoShot ? "unequal_two_shot" : "unequal_chunks", type, op), r, {3, 128}, call);
  }
  Buffers& result = inPlace ? in : out;
  result.download(name);
  for (int r = 0; r < ranks; r++) {
    const size_t first = inPlace ? begins[r] : 0;
    for (size_t i = 0; i < begins[r + 1] - begins[r]; i++) {
      compare(type, op, inputs, begins[r] + i, result.hostAt(r), first + i, name + " rank " + std::to_string(r));
    }
    const size_t behind = (first + begins[r + 1] - begins[r]) * type.size;
    for (size_t i = behind; !inPlace && i < result.bytes; i++) {
      if (result.hostAt(r)[i] != 0x5a) fail(name + ": wrote behind its part");
    }
  }
  cases++;
}

void unequals(World& world) {
  for (const Type& type : kTypes) {
    for (uint32_t op = 0; op <= 8; op++) {
      const bool bitwise = op >= tutti::kBand && op <= tutti::kBxor;
      if ((bitwise && !type.integer) || (op == tutti::kPremulSum && type.integer)) continue;
      for (size_t count : {1, 3, 64, 1021, 4096, 20011}) {
        for (int variant = 0; variant < 4; variant++) {
          const unsigned inShift = variant == 1 ? type.size : variant == 2 ? 1 : 0;
          const unsigned outShift = variant == 1 ? 3 * type.size : variant == 2 ? 5 : 0;
          unequal(world, false, type, op, count, inShift, outShift, variant == 3);
          // Three blocks of 128 threads hold fewer packets than the slots of the largest.
          if (adds(op) && !type.integer && count <= 1021) {
            unequal(world, true, type, op, count, inShift, outShift, variant == 3);
          }
        }
      }
    }
  }
}

void broadcasts(World& world) {
  for (size_t bytes : {1, 17, 5000, 123456, 123457}) {
    for (int root = 0; root < world.ranks; root++) {
      const std::string name = "broadcast of " + std::to_string(bytes);
      const bool shares = bytes % 16 == 0;
      Buffers data(world, world.in, shares ? 0 : 3, bytes);
      for (int r = 0; r < world.ranks; r++) {
        for (size_t i = 0; i < bytes; i++) data.hostAt(r)[i] = char(generator());
      }
      const auto inputs = inputsOf(data);
      data.upload();
      for (int r = 0; r < world.ranks; r++) {
        tutti::ReduceCall call = reduceCall(world, data.at(r), data.at(r), bytes, tutti::kSum);
        call.sources = 1u << root;
        call.targets = ((1u << world.ranks) - 1) & ~call.sources;
        call.chunk = 1024;
        for (int p = 0; shares && p < world.ranks; p++) call.shared[p] = uint64_t(call.out) + 7;
        world.collective("tutti_chunks_u8_sum", r, {4, 256}, call);
      }
      data.download(name);
      for (int r = 0; r < world.ranks; r++) {
        if (std::memcmp(data.hostAt(r), inputs[root].data(), bytes) != 0) fail(name);
      }
      cases++;
    }
  }
}

// Random splits: pairs of no bytes, of packets and of chunks in one call.
void exchanges(World& world) {
  const int ranks = world.ranks;
  for (int round = 0; round < (quick ? 6 : 40); round++) {
    const std::string name = "exchange " + std::to_string(round);
    std::vector<std::vector<size_t>> bytes(ranks, std::vector<size_t>(ranks));
    size_t most = 0;
    for (auto& row : bytes) {
      size_t sum = 0;
      for (auto& pair : row) {
        const uint64_t draw = generator() % 5;
        pair = draw == 0   ? 0
               : draw == 1 ? generator() % 64
               : draw == 2 ? generator() % 8000
               : draw == 3 ? generator() % 60000
                           : 40000 + generator() % 200000;
        sum += pair;
      }
      most = std::max(most, sum);
    }
    const uint64_t packetLimit = 32768;
    size_t mostReceived = 0;
    for (int r = 0; r < ranks; r++) {
      size_t sum = 0;
      for (int p = 0; p < ranks; p++) sum += bytes[p][r];
      mostReceived = std::max(mostReceived, sum);
    }
    Buffers in(world, world.in, round % 3, most);
    Buffers out(world, world.out, round % 5, mostReceived);
    for (int r = 0; r < ranks; r++) {
      for (size_t i = 0; i < most; i++) in.hostAt(r)[i] = char(generator());
    }
    in.upload();
    out.upload();
    for (int r = 0; r < ranks; r++) {
      tutti::ExchangeCall call = {};
      size_t from = 0;
      size_t to = 0;
      for (int p = 0; p < ranks; p++) {
        call.src[p] = in.at(r) + from;
        call.dst[p] = out.at(r) + to;
        call.sendBytes[p] = bytes[r][p];
        call.recvBytes[p] = bytes[p][r];
        from += bytes[r][p];
        to += bytes[p][r];
      }
      call.packetLimit = packetLimit;
      call.timeoutNs = 5000000000ull;
      world.collective("tutti_exchange", r, {world.channels[0].lanes, 256}, call);
    }
    out.download(name);
    for (int r = 0; r < ranks; r++) {
      size_t to = 0;
      for (int p = 0; p < ranks; p++) {
        size_t from = 0;
        for (int q = 0; q < r; q++) from += bytes[p][q];
        if (std::memcmp(out.hostAt(r) + to, in.hostAt(p) + from, bytes[p][r]) != 0) {
          fail(name + ": rank " + std::to_string(r) + " from " + std::to_string(p) + ", " +
               std::to_string(bytes[p][r]) + " bytes");
        }
        to += bytes[p][r];
      }
    }
    cases++;
  }
}

void signals(World& world) {
  uint32_t* pads[tutti::kMaxRanks] = {};
  const size_t words = 4 * world.ranks;
  for (int r = 0; r < world.ranks; r++) {
    CHECK(cudaSetDevice(world.deviceOf(r)));
    CHECK(cudaMalloc(&pads[r], words * 4));
    CHECK(cudaMemset(pads[r], 0, words * 4));
    CHECK(cudaDeviceSynchronize());
  }
  tutti::SignalPads all = {};
  std::memcpy(all.pads, pads, sizeof(pads));
  unsigned long long timeout = 5000;
  unsigned long long timeoutNs = 5000000000ull;
  for (int round = 0; round < 5; round++) {
    for (int r = 0; r < world.ranks; r++) {
      CHECK(cudaSetDevice(world.deviceOf(r)));
      unsigned channel = round % 4;
      unsigned rank = r;
      unsigned ranks = world.ranks;
      uint32_t* control = world.channels[r].control;
      world.launch(world.kernel("tutti_signal_barrier"), r, {1, 32},
                   {&all, &channel, &rank, &ranks, &control, &timeout});
      uint32_t* next = pads[(r + 1) % world.ranks] + r;
      uint32_t* own = pads[r] + (r + world.ranks - 1) % world.ranks;
      world.launch(world.kernel("tutti_put_signal"), r, {1, 1}, {&next, &control, &timeout});
      world.launch(world.kernel("tutti_wait_signal"), r, {1, 1}, {&own, &control, &timeout});
      world.launch(world.kernel("tutti_barrier"), r, {1, 32}, {&world.channels[r], &timeoutNs});
    }
    world.sync();
    if (world.status() != 0) fail("signals: status " + std::to_string(world.status()));
  }
  for (int r = 0; r < world.ranks; r++) {
    std::vector<uint32_t> host(words);
    CHECK(cudaMemcpy(host.data(), pads[r], words * 4, cudaMemcpyDefault));
    for (uint32_t word : host) {
      if (word != 0) fail("a pad is not zero after use");
    }
    CHECK(cudaFree(pads[r]));
  }
  cases++;
}

void streamBlock(World& world) {
  CHECK(cudaSetDevice(0));
  int* comm;
  CHECK(cudaHostAlloc(&comm, 8, cudaHostAllocMapped));
  volatile int* words = comm;
  for (int round = 0; round < 3; round++) {
    words[0] = 0;
    words[1] = 0;
    unsigned long long timeout = round == 1 ? 20 : round == 2 ? 60000 : 0;
    const auto start = std::chrono::steady_clock::now();
    world.launch(world.kernel("tutti_stream_block"), 0, {1, 1}, {&comm, &timeout});
    const auto limit = start + std::chrono::seconds(5);
    while (words[1] == 0 && std::chrono::steady_clock::now() < limit) {
    }
    if (words[1] == 0) fail("stream block did not run");
    if (round != 1) {
      if (cudaStreamQuery(world.streams[0]) != cudaErrorNotReady) fail("stream is not blocked");
      words[0] = 1;
    }
    CHECK(cudaStreamSynchronize(world.streams[0]));
    if (words[1] != (round == 1 ? 2 : 3)) fail("stream block: status " + std::to_string(words[1]));
    cases++;
  }
  CHECK(cudaFreeHost(comm));
}

// A rank that never comes, and an abort: the others return, and say whom they waited for.
void failures(const std::string& image, int devices) {
  const char* names[] = {"tutti_one_shot_f32_sum", "tutti_two_shot_f32_sum", "tutti_chunks_f32_sum",
                         "tutti_one_shot_i32_sum", "tutti_two_shot_i32_sum", "tutti_exchange"};
  for (const char* name : names) {
    for (bool aborts : {false, true}) {
      World world(image, 2, devices, 1 << 20, {});
      const auto start = std::chrono::steady_clock::now();
      if (std::string(name) == "tutti_exchange") {
        tutti::ExchangeCall call = {};
        call.src[1] = world.in[0];
        call.dst[1] = world.out[0];
        call.sendBytes[1] = call.recvBytes[1] = 100;
        call.packetLimit = 32768;
        call.timeoutNs = aborts ? 0 : 50000000;
        world.collective(name, 0, {2, 128}, call);
      } else {
        tutti::ReduceCall call = reduceCall(world, world.in[0], world.out[0], 10000, tutti::kSum);
        call.timeoutNs = aborts ? 0 : 50000000;
        world.collective(name, 0, {2, 512}, call);
      }
      if (aborts) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        world.controls[0][0] = 1;
      }
      world.sync();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const uint32_t status = world.status();
      if ((status & 255) != (aborts ? tutti::kAborted : tutti::kTimedOut) ||
          (status >> 8 & 255) != 1) {
        fail(std::string(name) + ": status " + std::to_string(status));
      }
      if (seconds > 2) fail(std::string(name) + " took " + std::to_string(seconds) + " s to end");
      cases++;
    }
  }
}

// Sequence numbers of 32 bits that wrap, after the call that makes slots forget old ones.
void wraps(const std::string& image, int ranks, int devices) {
  World world(image, ranks, devices, 4 << 20, {16, 2048, 16384, 2048});
  const Type& type = kTypes[6];
  for (uint64_t start : {(1ull << 30) - 2, (1ull << 32) - 3}) {
    world.setPackets(start);
    for (size_t count : {20011, 20000, 100, 16000, 3, 20010}) {
      reduction(world, count % 2 ? Kind::kOneShot : Kind::kTwoShot, type, tutti::kSum, count, 0, 0,
                false, {16, 128});
    }
  }
}

// Data that looks like an empty place of full packets: a NaN that is sent as another one. Then zeros, of either sign.
void emptyWords(const std::string& image, int ranks, int devices) {
  World world(image, ranks, devices, 4 << 20, {16, 2048, 16384, 2048});
  for (int round = 0; round < 3; round++) {
    for (const Type& type : kTypes) {
      if (type.integer) continue;
      for (const char* what : {"one_shot", "two_shot"}) {
        const std::string name = kernelName(what, type, tutti::kSum) + " of empty words";
        const size_t bytes = 40000;
        Buffers data(world, world.in, 0, bytes);
        for (int r = 0; r < ranks; r++) {
          for (size_t i = 0; i < bytes; i += 4) {
            const uint32_t word = round == 2 ? 0x80008000 : r == round ? tutti::kEmpty : 0;
            std::memcpy(data.hostAt(r) + i, &word, 4);
          }
        }
        data.upload();
        for (int r = 0; r < ranks; r++) {
          world.collective(kernelName(what, type, tutti::kSum), r, {8, 128},
                           reduceCall(world, data.at(r), data.at(r), bytes, tutti::kSum));
        }
        data.download(name);
        for (int r = 0; r < ranks; r++) {
          if (std::memcmp(data.hostAt(r), data.hostAt(0), bytes) != 0) fail(name + ": ranks differ");
          for (size_t i = 0; i < bytes / type.size; i++) {
            const double value = realAt(type, data.hostAt(r), i);
            // Of two halves of a word the upper one is the NaN; of a double the whole of both words.
            const bool isNan = round < 2 && (type.size != 2 || i % 2 == 1);
            if (isNan != std::isnan(value)) fail(name + ": element " + std::to_string(i));
          }
        }
        cases++;
      }
    }
  }
}

// Two groups on streams of their own, launched in opposite orders on the ranks.
void twoGroups(const std::string& image, int devices) {
  World first(image, 2, devices, 1 << 20, {});
  World second(image, 2, devices, 1 << 20, {});
  for (int round = 0; round < 50; round++) {
    for (int r = 0; r < 2; r++) {
      for (int g = 0; g < 2; g++) {
        World& world = (r + g) % 2 == 0 ? first : second;
        tutti::ReduceCall call =
            reduceCall(world, world.in[r], world.out[r], round % 2 ? 1000000 : 20000, tutti::kSum);
        world.collective(round % 2 ? "tutti_chunks_f32_sum" : "tutti_one_shot_f32_sum", r,
                         {32, 256}, call);
      }
    }
  }
  first.sync();
  second.sync();
  if (first.status() != 0 || second.status() != 0) fail("two groups stopped each other");
  cases++;
}

}  // namespace

int main(int argc, char** argv) {
  // A kernel that loads at its first launch waits for the device, where a peer's kernel may already wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  if (argc < 3) {
    std::fprintf(stderr, "usage: check IMAGE RANKS [quick]\n");
    return 2;
  }
  const std::string image = argv[1];
  const int ranks = std::atoi(argv[2]);
  quick = argc > 3 && std::string(argv[3]) == "quick";
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, ranks);
  {
    World world(image, ranks, devices, 4 << 20, {16, 2048, 16384, 2048});
    streamBlock(world);
    signals(world);
    reductions(world);
    unequals(world);
    broadcasts(world);
    exchanges(world);
    world.someLanes = true;
    reductions(world);
    unequals(world);
    broadcasts(world);
    exchanges(world);
  }
  wraps(image, ranks, devices);
  emptyWords(image, ranks, devices);
  if (ranks == 2) {
    failures(image, devices);
    twoGroups(image, devices);
  }
  std::printf("{\"check\": \"ok\", \"ranks\": %d, \"devices\": %d, \"cases\": %ld}\n", ranks,
              devices, cases);
  return 0;
}
