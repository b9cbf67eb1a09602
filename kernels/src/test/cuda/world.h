// A world for the harness: ranks on one or more GPUs of one process, with a channel between them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../../main/cuda/protocol.cuh"

#define CHECK(call)                                                                          \
  do {                                                                                       \
    cudaError_t error_ = (call);                                                             \
    if (error_ != cudaSuccess) {                                                             \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                     \
                   cudaGetErrorString(error_));                                              \
      std::exit(2);                                                                          \
    }                                                                                        \
  } while (0)

struct Launch {
  unsigned grid;
  unsigned block;
};

class World {
 public:
  struct Shape {
    unsigned lanes = 64;
    unsigned packetSlots = 512;
    unsigned chunkBytes = 16384;
    unsigned fullSlots = 512;
  };

  World(const std::string& image, int ranks, int devices, size_t userBytes, Shape shape)
      : ranks(ranks), userBytes(userBytes), devices_(devices) {
    CHECK(cudaSetDevice(0));
    CHECK(cudaLibraryLoadFromFile(&library_, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr,
                                  0));
    for (int d = 0; d < devices; d++) {
      CHECK(cudaSetDevice(d));
      for (int p = 0; p < devices; p++) {
        if (p != d) {
          static bool enabled[16][16];
          if (!enabled[d][p]) CHECK(cudaDeviceEnablePeerAccess(p, 0));
          enabled[d][p] = true;
        }
      }
    }
    tutti::Channel common = {};
    common.ranks = ranks;
    common.lanes = shape.lanes;
    common.packetSlots = shape.packetSlots;
    common.chunkBytes = shape.chunkBytes;
    common.fullSlots = shape.fullSlots;
    const size_t areaBytes = tutti::areaBytes(common);
    for (int r = 0; r < ranks; r++) {
      CHECK(cudaSetDevice(deviceOf(r)));
      cudaStream_t stream;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      streams.push_back(stream);
      common.areas[r] = static_cast<char*>(zeroed(areaBytes));
      states_.push_back(static_cast<tutti::LaneState*>(zeroed(shape.lanes * 256)));
      in.push_back(static_cast<char*>(zeroed(userBytes)));
      out.push_back(static_cast<char*>(zeroed(userBytes)));
      void* control;
      CHECK(cudaHostAlloc(&control, 64, cudaHostAllocMapped | cudaHostAllocPortable));
      std::memset(control, 0, 64);
      controls.push_back(static_cast<volatile uint32_t*>(control));
    }
    for (int r = 0; r < ranks; r++) {
      tutti::Channel channel = common;
      channel.rank = r;
      channel.state = states_[r];
      channel.control = const_cast<uint32_t*>(controls[r]);
      channels.push_back(channel);
    }
    sync();
  }

  ~World() {
    for (int r = 0; r < ranks; r++) {
      cudaSetDevice(deviceOf(r));
      cudaStreamDestroy(streams[r]);
      cudaFree(channels[r].areas[r]);
      cudaFree(states_[r]);
      cudaFree(in[r]);
      cudaFree(out[r]);
      cudaFreeHost(const_cast<uint32_t*>(controls[r]));
    }
  }

  int deviceOf(int rank) const { return rank % devices_; }

  cudaKernel_t kernel(const std::string& name) {
    auto found = kernels_.find(name);
    if (found == kernels_.end()) {
      cudaKernel_t loaded;
      CHECK(cudaLibraryGetKernel(&loaded, library_, name.c_str()));
      found = kernels_.emplace(name, loaded).first;
    }
    return found->second;
  }

  void launch(cudaKernel_t kernel, int rank, Launch launch, std::vector<void*> args) {
    CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(launch.grid),
                           dim3(launch.block), args.data(), 0, streams[rank]));
  }

  template <class C>
  void collective(const std::string& name, int rank, Launch shape, const C& call) {
    C copy = call;
    CHECK(cudaSetDevice(deviceOf(rank)));
    if (!someLanes || rank == 0) {
      launch(kernel(name), rank, shape, {&channels[rank], &copy});
      return;
    }
    std::string some = name;
    for (const char* tuned : {"f32_sum", "f64_sum", "f16_sum", "bf16_sum", "u8_sum"}) {
      if (name == std::string("tutti_chunks_") + tuned) {
        some = std::string("tutti_some_chunks_") + tuned;
      }
    }
    tutti::Channel channel = channels[rank];
    channel.callLanes = shape.grid;
    for (unsigned first = 0; first < shape.grid; first += rank) {
      channel.firstLane = first;
      const unsigned lanes = std::min(unsigned(rank), shape.grid - first);
      launch(kernel(some), rank, {lanes, shape.block}, {&channel, &copy});
    }
  }

  void sync() {
    for (int r = 0; r < static_cast<int>(streams.size()); r++) {
      CHECK(cudaSetDevice(deviceOf(r)));
      CHECK(cudaStreamSynchronize(streams[r]));
    }
  }

  // The first status that a rank reports, or 0.
  uint32_t status() const {
    for (int r = 0; r < ranks; r++) {
      if (controls[r][1] != 0) return controls[r][1];
    }
    return 0;
  }

  void setPackets(uint64_t sequence) {
    for (int r = 0; r < ranks; r++) {
      CHECK(cudaSetDevice(deviceOf(r)));
      std::vector<tutti::LaneState> states(channels[r].lanes);
      std::memset(states.data(), 0, states.size() * sizeof(tutti::LaneState));
      for (auto& state : states) state.packets = sequence;
      CHECK(cudaMemcpy(states_[r], states.data(), states.size() * sizeof(tutti::LaneState),
                       cudaMemcpyHostToDevice));
    }
  }

  bool someLanes = false;  // rank r launches r lanes at a time, rank 0 all of them
  const int ranks;
  const size_t userBytes;
  std::vector<cudaStream_t> streams;
  std::vector<char*> in;
  std::vector<char*> out;
  std::vector<volatile uint32_t*> controls;
  std::vector<tutti::Channel> channels;

 private:
  static void* zeroed(size_t bytes) {
    void* memory;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0, bytes));
    CHECK(cudaDeviceSynchronize());
    return memory;
  }

  const int devices_;
  cudaLibrary_t library_;
  std::map<std::string, cudaKernel_t> kernels_;
  std::vector<tutti::LaneState*> states_;
};

inline uint64_t roundUp(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

inline tutti::ReduceCall reduceCall(World& world, const char* in, char* out, uint64_t bytes,
                                    uint32_t op) {
  tutti::ReduceCall call = {};
  call.in = in;
  call.out = out;
  call.bytes = bytes;
  call.partBytes = roundUp((bytes + world.ranks - 1) / world.ranks, 16);
  call.factor = 1;
  call.timeoutNs = 5000000000ull;
  call.op = op;
  call.sources = (1u << world.ranks) - 1;
  call.targets = call.sources;
  call.chunk = world.channels[0].chunkBytes;
  return call;
}
