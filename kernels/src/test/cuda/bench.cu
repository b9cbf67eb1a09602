// Times all-reduce (bf16 sum) over sizes, algorithms and launch shapes: in a CUDA graph, and eagerly, back to back, without
// and with an event behind each call.
// usage: bench IMAGE RANKS [most bytes]; one GPU per rank where there are as many. Prints JSON lines: microseconds per
// call, the slowest rank of each series, the median of five series.
#include <algorithm>
#include <mutex>

#include "world.h"

namespace {

class SpinBarrier {
 public:
  explicit SpinBarrier(int parties) : parties_(parties) {}
  void await() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == parties_) {
      arrived_ = 0;
      round_++;
    } else {
      while (round_.load() == round) {
      }
    }
  }

 private:
  const int parties_;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};
};

struct Plan {
  std::string label;
  std::string kernel;
  uint64_t bytes;
  Launch shape;
  std::function<void(int)> enqueue;
};

enum Mode { kGraph, kEager, kEvents, kModes };
using Times = std::vector<double>;

Times measure(World& world, const Plan& plan) {
  const int ranks = world.ranks;
  const int calls = plan.bytes >= (64 << 20) ? 1 : plan.bytes >= (4 << 20) ? 5 : 40;
  const int repeats = plan.bytes >= (256 << 20) ? 3 : 5;
  constexpr int kSeries = 5;
  std::vector<std::vector<double>> micros(kModes, std::vector<double>(kSeries * ranks));
  SpinBarrier barrier(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; r++) {
    threads.emplace_back([&, r] {
      CHECK(cudaSetDevice(world.deviceOf(r)));
      cudaStream_t stream = world.streams[r];
      cudaEvent_t start;
      cudaEvent_t stop;
      CHECK(cudaEventCreate(&start));
      CHECK(cudaEventCreate(&stop));
      std::vector<cudaEvent_t> behind(64);
      for (auto& event : behind) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < calls; i++) plan.enqueue(r);
      CHECK(cudaStreamEndCapture(stream, &graph));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
      CHECK(cudaGraphUpload(executable, stream));
      for (int mode = 0; mode < kModes; mode++) {
        for (int series = -1; series < kSeries; series++) {
          CHECK(cudaStreamSynchronize(stream));
          barrier.await();
          CHECK(cudaEventRecord(start, stream));
          for (int i = 0; i < repeats; i++) {
            if (mode == kGraph) {
              CHECK(cudaGraphLaunch(executable, stream));
            } else {
              for (int c = 0; c < calls; c++) {
                plan.enqueue(r);
                if (mode == kEvents) CHECK(cudaEventRecord(behind[c % behind.size()], stream));
              }
            }
          }
          CHECK(cudaEventRecord(stop, stream));
          CHECK(cudaStreamSynchronize(stream));
          float millis;
          CHECK(cudaEventElapsedTime(&millis, start, stop));
          if (series >= 0) micros[mode][series * ranks + r] = millis * 1000.0 / (repeats * calls);
        }
      }
      for (auto& event : behind) CHECK(cudaEventDestroy(event));
      CHECK(cudaGraphExecDestroy(executable));
      CHECK(cudaGraphDestroy(graph));
      CHECK(cudaEventDestroy(start));
      CHECK(cudaEventDestroy(stop));
    });
  }
  for (auto& thread : threads) thread.join();
  if (world.status() != 0) {
    std::fprintf(stderr, "%s of %llu bytes: status %x\n", plan.label.c_str(),
                 (unsigned long long)plan.bytes, world.status());
    std::exit(1);
  }
  Times medians(kModes);
  for (int mode = 0; mode < kModes; mode++) {
    std::vector<double> slowest;
    for (int series = 0; series < kSeries; series++) {
      slowest.push_back(*std::max_element(micros[mode].begin() + series * ranks,
                                          micros[mode].begin() + (series + 1) * ranks));
    }
    std::sort(slowest.begin(), slowest.end());
    medians[mode] = slowest[kSeries / 2];
  }
  return medians;
}

void fillInputs(World& world, uint64_t bytes) {
  for (int r = 0; r < world.ranks; r++) {
    const float value = float(r + 1);
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    std::vector<uint16_t> host(bytes / 2, uint16_t(wide >> 16));
    CHECK(cudaMemcpy(world.in[r], host.data(), bytes, cudaMemcpyDefault));
  }
}

void verify(World& world, const Plan& plan) {
  const float sum = float(world.ranks * (world.ranks + 1) / 2);
  uint32_t wide;
  std::memcpy(&wide, &sum, 4);
  for (int r = 0; r < world.ranks; r++) {
    CHECK(cudaSetDevice(world.deviceOf(r)));
    const uint64_t window = std::min<uint64_t>(plan.bytes, 1 << 20);
    std::vector<uint16_t> host(window / 2);
    for (uint64_t at : {uint64_t(0), (plan.bytes - window) / 4 * 2, plan.bytes - window}) {
      CHECK(cudaMemcpy(host.data(), world.out[r] + at, window, cudaMemcpyDefault));
      for (uint16_t bits : host) {
        if (bits != uint16_t(wide >> 16)) {
          std::fprintf(stderr, "%s of %llu bytes is wrong\n", plan.label.c_str(),
                       (unsigned long long)plan.bytes);
          std::exit(1);
        }
      }
    }
    CHECK(cudaMemset(world.out[r], 0, plan.bytes));
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A kernel that loads at its first launch waits for the device, where a peer's kernel may already wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const std::string image = argv[1];
  const int ranks = std::atoi(argv[2]);
  const uint64_t most = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1ull << 30;
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  devices = std::min(devices, ranks);
  const unsigned lanes = devices == ranks ? 128 : 16;
  const unsigned fullSlots = (16 << 20) / ranks / 16 / lanes;
  World world(image, ranks, devices, most, {lanes, 512, 32768, fullSlots});
  fillInputs(world, most);
  std::map<std::pair<std::string, uint64_t>, std::pair<double, std::string>> best;
  const auto run = [&](const std::string& label, const std::string& kernel, uint64_t bytes,
                       Launch shape, unsigned chunk, auto call, bool checks) {
    Plan plan{label, kernel, bytes, shape, [&world, kernel, shape, call](int r) {
                world.collective(kernel, r, shape, call(r));
              }};
    world.kernel(kernel);
    const Times times = measure(world, plan);
    if (checks) verify(world, plan);
    char line[400];
    std::snprintf(line, sizeof line,
                  "{\"algorithm\": \"%s\", \"ranks\": %d, \"gpus\": %d, \"bytes\": %llu, \"grid\": "
                  "%u, \"block\": %u, \"chunk\": %u, \"graph_us\": %.2f, \"eager_us\": %.2f, \"events_us\": %.2f}",
                  label.c_str(), ranks, devices, (unsigned long long)bytes, shape.grid, shape.block,
                  chunk, times[kGraph], times[kEager], times[kEvents]);
    std::printf("%s\n", line);
    auto& entry = best[{label, bytes}];
    if (entry.second.empty() || times[kGraph] < entry.first) entry = {times[kGraph], line};
  };
  const uint64_t sizes[] = {256,     1024,    4096,     16384,    65536,     131072,    262144, 524288,
                            1 << 20, 2 << 20, 4 << 20,  8 << 20,  16 << 20,  64 << 20,  256 << 20,
                            1 << 30};
  for (uint64_t bytes : sizes) {
    if (bytes > most) break;
    const auto reduce = [&](unsigned chunk) {
      return [&world, bytes, chunk](int r) {
        tutti::ReduceCall call = reduceCall(world, world.in[r], world.out[r], bytes, tutti::kSum);
        if (chunk != 0) call.chunk = chunk;
        return call;
      };
    };
    for (unsigned block : {64u, 128u, 256u, 512u}) {
      const uint64_t packets = (bytes + 15) / 16;
      const unsigned grid = unsigned(std::min<uint64_t>(lanes, (packets + block - 1) / block));
      if (bytes <= (ranks == 2 ? 4 << 20 : 262144)) {
        run("one_shot", "tutti_one_shot_bf16_sum", bytes, {grid, block}, 0, reduce(0), true);
      }
      const uint64_t part = roundUp((bytes + ranks - 1) / ranks, 16) / 16;
      const unsigned partGrid = unsigned(std::min<uint64_t>(lanes, (part + block - 1) / block));
      if (bytes <= (16 << 20) && bytes >= 4096 && roundUp(part, partGrid * block) / partGrid <= fullSlots) {
        run("two_shot", "tutti_two_shot_bf16_sum", bytes, {partGrid, block}, 0, reduce(0), true);
      }
    }
    if (bytes < 262144) continue;
    for (unsigned grid : {16u, 32u, 64u, 96u, 128u}) {
      for (unsigned block : {256u, 512u}) {
        if (grid > lanes) continue;
        for (unsigned mostChunk : {8192u, 16384u, 32768u}) {
          const uint64_t share = roundUp((bytes / ranks + grid - 1) / grid, 16);
          if (share < mostChunk && mostChunk != 8192) continue;
          if (mostChunk == 8192 && share > 16384) continue;
          const unsigned chunk = unsigned(std::min<uint64_t>(mostChunk, share));
          run("chunks", "tutti_chunks_bf16_sum", bytes, {grid, block}, chunk, reduce(chunk), true);
          run("chunks_shared", "tutti_chunks_bf16_sum", bytes, {grid, block}, chunk,
              [&world, bytes, chunk](int r) {
                tutti::ReduceCall call =
                    reduceCall(world, world.in[r], world.out[r], bytes, tutti::kSum);
                call.chunk = chunk;
                for (int p = 0; p < world.ranks; p++) call.shared[p] = uint64_t(call.out) + 1;
                return call;
              },
              true);
        }
      }
    }
  }
  for (uint64_t bytes : {4ull << 10, 64ull << 10, 1ull << 20, 16ull << 20, 256ull << 20}) {
    if (bytes > most) break;
    const auto exchange = [&world, bytes](bool all) {
      return [&world, bytes, all](int r) {
        tutti::ExchangeCall call = {};
        const uint64_t share = bytes / world.ranks;
        for (int p = 0; p < world.ranks; p++) {
          call.src[p] = world.in[r] + (all ? p * share : 0);
          call.dst[p] = world.out[r] + p * share;
          call.sendBytes[p] = call.recvBytes[p] = share;
        }
        call.packetLimit = 262144;
        call.timeoutNs = 5000000000ull;
        return call;
      };
    };
    for (unsigned block : {128u, 256u, 512u}) {
      const uint64_t wanted = (bytes / ranks / 8 + 127) / 128;
      const unsigned grid = unsigned(std::min<uint64_t>(lanes, std::max<uint64_t>(1, wanted)));
      run("all_gather", "tutti_exchange", bytes, {grid, block}, 0, exchange(false), false);
      run("all_to_all", "tutti_exchange", bytes, {grid, block}, 0, exchange(true), false);
    }
    if (bytes < (64 << 10)) continue;
    const uint64_t share = roundUp((bytes / ranks + lanes - 1) / lanes, 16);
    const unsigned chunk = unsigned(std::min<uint64_t>(32768, share));
    for (const char* what : {"broadcast", "reduce_scatter", "reduce"}) {
      run(what, "tutti_chunks_bf16_sum", bytes, {lanes, 512}, chunk,
          [&world, bytes, chunk, what](int r) {
            tutti::ReduceCall call =
                reduceCall(world, world.in[r], world.out[r], bytes, tutti::kSum);
            call.chunk = chunk;
            if (what[0] == 'b') {
              call.sources = 1;
              call.targets &= ~1u;
            } else {
              call.targets = what[6] == '_' ? 0 : 1;
            }
            return call;
          },
          false);
    }
  }
  std::fprintf(stderr, "best by graph time:\n");
  for (const auto& [key, value] : best) std::fprintf(stderr, "%s\n", value.second.c_str());
  return 0;
}
