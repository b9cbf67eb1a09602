// Times a collective of an MPI library as `tutti bench` does, and prints one JSON object a line from rank 0.
//
//   mpirun -np N collectives OP BYTES...     OP: allReduce broadcast allGather reduceScatter allToAll barrier sendRecv
//
// In-place float32 sums in page-aligned, touched memory; 500 ms of warm-up; then as many calls, back to back, as take 800 ms, or as many as
// MILLISECONDS says, one time stamp for each on rank 0; before and after that every element of the result is checked on all ranks, and of
// barrier that it lets no rank pass too early.
// BYTES are of the whole tensor, over all ranks where each has a part, and are rounded to whole elements, at least one for each part.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;
static long *came; // to the barriers that are checked; shared by all ranks

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void call(const char *op, float *data, float *other, int count, int turn) {
  int part = count / size;
  if (!strcmp(op, "allReduce")) {
    MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(op, "broadcast")) {
    MPI_Bcast(data, count, MPI_FLOAT, turn % size, MPI_COMM_WORLD);
  } else if (!strcmp(op, "allGather")) {
    MPI_Allgather(other, part, MPI_FLOAT, data, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (!strcmp(op, "reduceScatter")) {
    MPI_Reduce_scatter_block(data, other, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  } else if (!strcmp(op, "allToAll")) {
    MPI_Alltoall(data, part, MPI_FLOAT, other, part, MPI_FLOAT, MPI_COMM_WORLD);
  } else if (!strcmp(op, "barrier")) {
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (!strcmp(op, "sendRecv")) {
    MPI_Sendrecv(data, count, MPI_FLOAT, (rank + 1) % size, 0, other, count, MPI_FLOAT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  } else {
    fprintf(stderr, "no such operation: %s\n", op);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

// What a rank puts in. The period is a prime, so that a piece in a wrong place shows; sums of 40 ranks are exact.
static float value(int of, int i) { return i % 8191 + 8192 * of; }

static float sum(int i) { return size * (i % 8191) + 8192 * (size * (size - 1) / 2); }

static void fill(float *to, int of, int count) {
  for (int i = 0; i < count; i++) to[i] = value(of, i);
}

static long differ(const float *from, int of, int first, int count) {
  long bad = 0;
  for (int i = 0; i < count; i++) bad += from[i] != value(of, first + i);
  return bad;
}

static long differFromSum(const float *from, int first, int count) {
  long bad = 0;
  for (int i = 0; i < count; i++) bad += from[i] != sum(first + i);
  return bad;
}

// Runs the operation on known input, with each rank as the root where it has one, and returns the number of wrong elements on this rank.
static long wrong(const char *op, float *data, float *other, int count) {
  int part = count / size;
  long bad = 0;
  if (!strcmp(op, "broadcast")) {
    for (int root = 0; root < size; root++) {
      fill(data, rank, count);
      call(op, data, other, count, root);
      bad += differ(data, root, 0, count);
    }
    return bad;
  }
  if (!strcmp(op, "barrier")) {
    static long checks;
    __atomic_fetch_add(came, 1, __ATOMIC_SEQ_CST);
    call(op, data, other, count, 0);
    bad = ++checks * size - __atomic_load_n(came, __ATOMIC_SEQ_CST);
    return bad > 0 ? bad : 0;
  }
  int gathers = !strcmp(op, "allGather");
  float *input = gathers ? other : data, *output = gathers ? data : other;
  memset(output, 0xff, 4L * count);
  fill(input, rank, count);
  call(op, data, other, count, 0);
  if (!strcmp(op, "allReduce")) {
    bad = differFromSum(data, 0, count);
  } else if (!strcmp(op, "reduceScatter")) {
    bad = differFromSum(other, rank * part, part);
  } else if (!strcmp(op, "sendRecv")) {
    bad = differ(other, (rank + size - 1) % size, 0, count);
  } else {
    for (int of = 0; of < size; of++) bad += differ(output + of * part, of, gathers ? 0 : rank * part, part);
  }
  return bad;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(library, &length);
  const char *name = strstr(library, "Open MPI") ? "openmpi" : "mpich";
  const char *op = argv[1];
  const char *milliseconds = getenv("MILLISECONDS");
  double span = milliseconds ? atof(milliseconds) * 1e3 : 800e3;
  MPI_Win window;
  MPI_Aint bytesOfCame;
  int unitOfCame;
  MPI_Win_allocate_shared(rank ? 0 : sizeof *came, sizeof *came, MPI_INFO_NULL, MPI_COMM_WORLD, &came, &window);
  MPI_Win_shared_query(window, 0, &bytesOfCame, &unitOfCame, &came);
  if (rank == 0) *came = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int a = 2; a < argc; a++) {
    int parted = !strcmp(op, "allGather") || !strcmp(op, "reduceScatter") || !strcmp(op, "allToAll");
    long unit = parted ? 4 * size : 4, units = atol(argv[a]) / unit;
    long bytes = !strcmp(op, "barrier") ? 0 : unit * (units ? units : 1);
    int count = bytes / 4;
    float *data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    float *other = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
    memset(data, 0, bytes);
    memset(other, 0, bytes);
    long bad = wrong(op, data, other, count);
    memset(data, 0, bytes);
    memset(other, 0, bytes);
    int rotates = !strcmp(op, "broadcast") ? size : 1;
    int calls = 0, go = 1;
    double start = now(), spent = 0;
    while (go) {
      for (int i = 0; i < 10; i++) call(op, data, other, count, i);
      calls += 10;
      spent = now() - start;
      go = spent < 500e3;
      MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    double each = spent / calls * rotates;
    int least = bytes >= 64 << 20 ? 8 : bytes >= 8 << 20 ? 30 : 200;
    int samples = span / each > 50000 ? 50000 : span / each < least ? least : (int)(span / each);
    MPI_Bcast(&samples, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double *times = malloc(samples * sizeof(double));
    double before = now(), first = before;
    for (int s = 0; s < samples; s++) {
      for (int r = 0; r < rotates; r++) call(op, data, other, count, r);
      double after = now();
      times[s] = (after - before) / rotates;
      before = after;
    }
    double mean = (before - first) / samples / rotates;
    bad += wrong(op, data, other, count);
    long all = 0;
    MPI_Reduce(&bad, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    qsort(times, samples, sizeof(double), ascending);
    if (rank == 0) {
      printf("{\"backend\":\"%s\",\"op\":\"%s\",\"ranks\":%d,\"bytes\":%ld,\"calls\":%d,\"time_us_p50\":%.3f,\"time_us_p99\":%.3f,"
             "\"time_us_mean\":%.3f,\"wrong\":%ld}\n",
             name, op, size, bytes, samples, times[samples / 2], times[(int)(samples * 0.99)], mean, all);
      fflush(stdout);
    }
    free(times);
    free(data);
    free(other);
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
