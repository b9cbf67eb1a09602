// Times calls (bf16 sum, in a CUDA graph) after one rank came late, so that the kernels of the others waited long.
// usage: late IMAGE RANKS; one GPU per rank. Prints microseconds per call on the late rank, medians of eight series: of
// the first 20 calls, and of the next 80 with the least and the most.
#include <unistd.h>

#include <algorithm>

#include "world.h"

namespace {

constexpr int kCalls = 20;
constexpr int kReplays = 4;
constexpr int kSeries = 9;

struct Case {
  const char* kernel;
  uint64_t bytes;
  Launch shape;
  unsigned chunk;
};

struct Times {
  std::vector<double> first;
  std::vector<double> next;
};

Times measure(World& world, const Case& what, int lateMicros) {
  Times times;
  std::atomic<int> arrived{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < world.ranks; r++) {
    threads.emplace_back([&, r] {
      CHECK(cudaSetDevice(world.deviceOf(r)));
      cudaStream_t stream = world.streams[r];
      cudaEvent_t events[3];
      for (auto& event : events) CHECK(cudaEventCreate(&event));
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < kCalls; i++) {
        tutti::ReduceCall call =
            reduceCall(world, world.in[r], world.out[r], what.bytes, tutti::kSum);
        if (what.chunk != 0) call.chunk = what.chunk;
        world.collective(what.kernel, r, what.shape, call);
      }
      CHECK(cudaStreamEndCapture(stream, &graph));
      CHECK(cudaGraphInstantiate(&executable, graph, 0));
      CHECK(cudaGraphUpload(executable, stream));
      for (int series = 0; series < kSeries; series++) {
        CHECK(cudaStreamSynchronize(stream));
        arrived++;
        while (arrived < world.ranks * (series + 1)) {
        }
        if (r == 0 && lateMicros != 0) usleep(lateMicros);
        CHECK(cudaEventRecord(events[0], stream));
        CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaEventRecord(events[1], stream));
        for (int i = 0; i < kReplays; i++) CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaEventRecord(events[2], stream));
        CHECK(cudaStreamSynchronize(stream));
        float first;
        float next;
        CHECK(cudaEventElapsedTime(&first, events[0], events[1]));
        CHECK(cudaEventElapsedTime(&next, events[1], events[2]));
        if (r == 0 && series > 0) {
          times.first.push_back(first * 1e3 / kCalls);
          times.next.push_back(next * 1e3 / (kCalls * kReplays));
        }
      }
      CHECK(cudaGraphExecDestroy(executable));
      CHECK(cudaGraphDestroy(graph));
      for (auto& event : events) CHECK(cudaEventDestroy(event));
    });
  }
  for (auto& thread : threads) thread.join();
  std::sort(times.first.begin(), times.first.end());
  std::sort(times.next.begin(), times.next.end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  if (argc < 3) {
    std::fprintf(stderr, "usage: late IMAGE RANKS\n");
    return 2;
  }
  const int ranks = std::atoi(argv[2]);
  World world(argv[1], ranks, ranks, 16 << 20, {128, 512, 32768, 2048});
  const Case cases[] = {{"tutti_one_shot_bf16_sum", 1 << 10, {1, 128}, 0},
                        {"tutti_one_shot_bf16_sum", 128 << 10, {86, 128}, 0},
                        {"tutti_two_shot_bf16_sum", 256 << 10, {43, 128}, 0},
                        {"tutti_two_shot_bf16_sum", 512 << 10, {86, 128}, 0},
                        {"tutti_two_shot_bf16_sum", 1 << 20, {86, 256}, 0},
                        {"tutti_two_shot_bf16_sum", 2 << 20, {86, 512}, 0},
                        {"tutti_chunks_bf16_sum", 4 << 20, {128, 256}, 8192},
                        {"tutti_chunks_bf16_sum", 16 << 20, {128, 256}, 16384}};
  for (const Case& what : cases) {
    for (int late : {0, 700, 3000}) {
      const Times times = measure(world, what, late);
      if (world.status() != 0) {
        std::fprintf(stderr, "%s: status %x\n", what.kernel, world.status());
        return 1;
      }
      std::printf(
          "{\"kernel\": \"%s\", \"ranks\": %d, \"bytes\": %llu, \"late_us\": %d, \"first_us\": "
          "%.2f, \"next_us\": %.2f, \"least_us\": %.2f, \"most_us\": %.2f}\n",
          what.kernel, ranks, (unsigned long long)what.bytes, late,
          times.first[times.first.size() / 2], times.next[times.next.size() / 2],
          times.next.front(), times.next.back());
      std::fflush(stdout);
    }
  }
  return 0;
}
