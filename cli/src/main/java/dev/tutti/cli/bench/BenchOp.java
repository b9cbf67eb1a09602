package dev.tutti.cli.bench;

import dev.tutti.CallOptions;
import dev.tutti.Capabilities;
import dev.tutti.DType;
import dev.tutti.OpType;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.spi.Staging;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * The operations that {@code tutti bench} measures, with the rules of nccl-tests for sizes and
 * bandwidth.
 */
enum BenchOp {
  ALL_REDUCE("allReduce", true, OpType.ALL_REDUCE) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor tensor = s.allocate(s.elements(bytes, 1));
      return s.unrooted(
          tensor,
          () -> s.group.allReduce(tensor, s.redop),
          () -> {
            s.fillMine(tensor);
            s.group.allReduce(tensor, s.redop);
            return s.wrongReduced(tensor, 0);
          });
    }
  },

  BROADCAST("broadcast", false, OpType.BROADCAST) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor tensor = s.allocate(s.elements(bytes, 1));
      return s.rooted(
          tensor,
          List.of(tensor),
          root -> s.group.broadcast(tensor, root),
          root -> {
            s.fillMine(tensor);
            s.group.broadcast(tensor, root);
            return s.wrong(root, tensor, 0);
          });
    }
  },

  REDUCE("reduce", true, OpType.REDUCE) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor tensor = s.allocate(s.elements(bytes, 1));
      return s.rooted(
          tensor,
          List.of(tensor),
          root -> s.group.reduce(tensor, s.redop, root),
          root -> {
            s.fillMine(tensor);
            s.group.reduce(tensor, s.redop, root);
            return s.rank() == root ? s.wrongReduced(tensor, 0) : 0;
          });
    }
  },

  ALL_GATHER("allGather", false, OpType.ALL_GATHER_INTO, OpType.ALL_GATHER) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      long[] splits = s.splits(s.elements(bytes, s.size()));
      Tensor input = s.allocate(splits[s.rank()]);
      Tensor output = s.allocate(LongStream.of(splits).sum());
      List<Tensor> parts = Staging.splitRows(output, splits);
      Runnable call =
          s.uneven
              ? () -> s.group.allGatherInto(output, input, splits)
              : s.has(OpType.ALL_GATHER_INTO)
                  ? () -> s.group.allGatherInto(output, input)
                  : () -> s.group.allGather(parts, input);
      return s.parted(
          input,
          output,
          call,
          () -> {
            s.fillMine(input);
            s.spoil(output);
            call.run();
            return s.countWrongParts(parts);
          });
    }
  },

  GATHER("gather", false, OpType.GATHER) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor input = s.allocate(s.elements(bytes, s.size()));
      Tensor output = s.allocate(input.numel() * s.size());
      List<Tensor> parts = s.parts(output);
      IntConsumer call = root -> s.group.gather(s.rank() == root ? parts : List.of(), input, root);
      return s.rooted(
          input,
          List.of(input, output),
          call,
          root -> {
            s.fillMine(input);
            s.spoil(output);
            call.accept(root);
            return s.rank() == root ? s.countWrongParts(parts) : 0;
          });
    }
  },

  SCATTER("scatter", false, OpType.SCATTER) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor output = s.allocate(s.elements(bytes, s.size()));
      Tensor input = s.allocate(output.numel() * s.size());
      List<Tensor> parts = s.parts(input);
      IntConsumer call =
          root -> s.group.scatter(output, s.rank() == root ? parts : List.of(), root);
      return s.rooted(
          output,
          List.of(input, output),
          call,
          root -> {
            s.fillMine(input);
            s.spoil(output);
            call.accept(root);
            return s.wrong(root, output, s.rank() * output.numel());
          });
    }
  },

  REDUCE_SCATTER("reduceScatter", true, OpType.REDUCE_SCATTER_INTO, OpType.REDUCE_SCATTER) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      long[] splits = s.splits(s.elements(bytes, s.size()));
      Tensor output = s.allocate(splits[s.rank()]);
      Tensor input = s.allocate(LongStream.of(splits).sum());
      List<Tensor> parts = Staging.splitRows(input, splits);
      Runnable call =
          s.uneven
              ? () -> s.group.reduceScatterInto(output, input, splits, s.redop)
              : s.has(OpType.REDUCE_SCATTER_INTO)
                  ? () -> s.group.reduceScatterInto(output, input, s.redop)
                  : () -> s.group.reduceScatter(output, parts, s.redop);
      return s.parted(
          output,
          input,
          call,
          () -> {
            s.fillMine(input);
            s.spoil(output);
            call.run();
            return s.wrongReduced(output, LongStream.of(splits).limit(s.rank()).sum());
          });
    }
  },

  ALL_TO_ALL("allToAll", false, OpType.ALL_TO_ALL_SINGLE, OpType.ALL_TO_ALL) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      long part = s.elements(bytes, s.size());
      Tensor input = s.allocate(part * s.size());
      Tensor output = s.allocate(part * s.size());
      List<Tensor> inputs = s.parts(input);
      List<Tensor> outputs = s.parts(output);
      Runnable call =
          s.has(OpType.ALL_TO_ALL_SINGLE)
              ? () -> s.group.allToAllSingle(output, input)
              : () -> s.group.allToAll(outputs, inputs);
      return new BenchCase(
          output.byteSize(),
          part,
          1,
          call,
          () -> {
            s.fillMine(input);
            s.spoil(output);
            call.run();
            long wrong = 0;
            for (int rank = 0; rank < s.size(); rank++) {
              wrong += s.wrong(rank, outputs.get(rank), s.rank() * part);
            }
            return wrong;
          },
          List.of(input, output));
    }
  },

  SEND_RECV("sendRecv", false, OpType.SEND) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      Tensor output = s.allocate(s.elements(bytes, 1));
      Tensor input = s.allocate(output.numel());
      int next = (s.rank() + 1) % s.size();
      int previous = (s.rank() + s.size() - 1) % s.size();
      Runnable call =
          () -> {
            Work received = s.group.recv(output, previous, 0, CallOptions.ASYNC);
            s.group.send(input, next);
            received.await();
          };
      return new BenchCase(
          input.byteSize(),
          input.numel(),
          1,
          call,
          () -> {
            s.fillMine(input);
            s.spoil(output);
            call.run();
            return s.wrong(previous, output, 0);
          },
          List.of(input, output));
    }
  },

  BARRIER("barrier", false, OpType.BARRIER) {
    @Override
    BenchCase prepare(Setup s, long bytes) {
      return new BenchCase(0, 0, 1, s.group::barrier, s::countEarly, List.of());
    }
  };

  private final String label;
  private final boolean reduces;
  private final OpType type;
  private final OpType otherwise;

  BenchOp(String label, boolean reduces, OpType type) {
    this(label, reduces, type, type);
  }

  BenchOp(String label, boolean reduces, OpType type, OpType otherwise) {
    this.label = label;
    this.reduces = reduces;
    this.type = type;
    this.otherwise = otherwise;
  }

  /** Returns the name as users write it. */
  String label() {
    return label;
  }

  /** Returns whether elements are reduced, so that the reduction operator matters. */
  boolean reduces() {
    return reduces;
  }

  /**
   * Returns whether the operation can be recorded into a graph, which is impossible if the host
   * takes part in it.
   */
  boolean isRecordable() {
    return this != SEND_RECV;
  }

  /** Returns whether the operation is measured at a series of sizes. */
  boolean hasSizes() {
    return this != BARRIER;
  }

  /**
   * Returns the sizes to measure, rounded to whole elements, with at least one element for each
   * part, and without duplicates.
   *
   * @param wanted the sizes in bytes, in ascending order
   * @param ranks the number of ranks
   * @param dtype the element type
   */
  List<Long> sizes(List<Long> wanted, int ranks, DType dtype) {
    if (!hasSizes()) {
      return List.of(0L);
    }
    long unit = (long) dtype.byteSize() * (hasParts() ? ranks : 1);
    return wanted.stream().map(bytes -> Math.max(1, bytes / unit) * unit).distinct().toList();
  }

  private boolean hasParts() {
    return switch (this) {
      case ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER, ALL_TO_ALL -> true;
      default -> false;
    };
  }

  /** Returns the operation that is measured if the backend has it. */
  OpType type() {
    return type;
  }

  /** Returns the number of elements of the whole, or of one rank's part. */
  long count(long bytes, int ranks, DType dtype) {
    return bytes / dtype.byteSize() / (hasParts() ? ranks : 1);
  }

  /** Returns whether a backend has the operation in at least one form. */
  boolean isIn(Capabilities capabilities) {
    return capabilities.has(type) || capabilities.has(otherwise);
  }

  /**
   * Prepares the operation to run.
   *
   * @param setup the group, type and operator
   * @param bytes one of {@link #sizes}
   */
  abstract BenchCase prepare(Setup setup, long bytes);

  /**
   * Returns the factor by which algorithm bandwidth is multiplied to get the load on the busiest
   * link, as in nccl-tests (its PERFORMANCE.md).
   *
   * @param ranks the number of ranks
   */
  double busFactor(int ranks) {
    if (this == ALL_REDUCE) {
      return 2.0 * (ranks - 1) / ranks;
    }
    return hasParts() ? (double) (ranks - 1) / ranks : 1;
  }

  /**
   * Finds an operation by its name, ignoring case.
   *
   * @param label the name
   * @throws IllegalArgumentException listing all names, if there is no such operation
   */
  static BenchOp ofLabel(String label) {
    return Arrays.stream(values())
        .filter(op -> op.label.equalsIgnoreCase(label.replace("_", "")))
        .findFirst()
        .orElseThrow(
            () ->
                new IllegalArgumentException(
                    "no such operation: '"
                        + label
                        + "'; the operations are "
                        + labels()
                        + " and all"));
  }

  private static String labels() {
    return Arrays.stream(values()).map(BenchOp::label).collect(Collectors.joining(", "));
  }

  /** What the cases of one operation have in common on this rank. */
  static final class Setup {
    private final ProcessGroup group;
    private final BenchMemory memory;
    private final DType dtype;
    private final ReduceOp redop;
    private final String name;
    private final boolean uneven;
    private final List<BenchPattern> inputs = new ArrayList<>();
    private final BenchPattern reduced;
    private long barriers;

    /**
     * Creates a setup.
     *
     * @param group the group to run in
     * @param memory creates the tensors
     * @param dtype the element type
     * @param redop the reduction operator; SUM if the operation does not reduce
     * @param name distinguishes this run from others in the group's store
     * @param uneven whether all-gathers and reduce-scatters have parts of unequal size
     */
    Setup(
        ProcessGroup group,
        BenchMemory memory,
        DType dtype,
        ReduceOp redop,
        String name,
        boolean uneven) {
      this.group = group;
      this.memory = memory;
      this.dtype = dtype;
      this.redop = redop;
      this.name = name;
      this.uneven = uneven;
      for (int rank = 0; rank < group.size(); rank++) {
        inputs.add(BenchPattern.input(dtype, redop, group.size(), rank));
      }
      this.reduced = BenchPattern.reduced(dtype, redop, group.size());
    }

    private int rank() {
      return group.rank();
    }

    private int size() {
      return group.size();
    }

    private boolean has(OpType type) {
      return group.capabilities().has(type);
    }

    private void fillMine(Tensor tensor) {
      memory.fill(tensor, inputs.get(rank()));
    }

    private void spoil(Tensor tensor) {
      memory.fill(tensor, (byte) 0xff);
    }

    private long wrong(int rank, Tensor tensor, long offset) {
      return memory.countWrong(tensor, inputs.get(rank), offset);
    }

    private long wrongReduced(Tensor tensor, long offset) {
      return memory.countWrong(tensor, reduced, offset);
    }

    private Tensor allocate(long elements) {
      return memory.allocate(dtype, elements);
    }

    private long elements(long bytes, int parts) {
      return bytes / dtype.byteSize() / parts;
    }

    private List<Tensor> parts(Tensor whole) {
      long[] splits = new long[size()];
      Arrays.fill(splits, whole.numel() / size());
      return Staging.splitRows(whole, splits);
    }

    /** Returns the elements of the part of each rank, with a given mean; within 10 % if uneven. */
    private long[] splits(long mean) {
      long most = mean / 20;
      // Parts of which each begins at a multiple of 16 elements, as rows of matrices do.
      long more = uneven ? most - (most < 16 ? 0 : most % 16) : 0;
      long[] splits = new long[size()];
      Arrays.setAll(
          splits,
          rank -> rank == size() - 1 && rank % 2 == 0 ? mean : mean + (rank % 2 * 2 - 1) * more);
      return splits;
    }

    private long countWrongParts(List<Tensor> parts) {
      long wrong = 0;
      for (int rank = 0; rank < size(); rank++) {
        wrong += wrong(rank, parts.get(rank), 0);
      }
      return wrong;
    }

    private BenchCase unrooted(Tensor tensor, Runnable call, LongSupplier check) {
      return new BenchCase(tensor.byteSize(), tensor.numel(), 1, call, check, List.of(tensor));
    }

    private BenchCase parted(Tensor part, Tensor whole, Runnable call, LongSupplier check) {
      return new BenchCase(whole.byteSize(), part.numel(), 1, call, check, List.of(part, whole));
    }

    private BenchCase rooted(Tensor part, List<Tensor> buffers, IntConsumer call, RootCheck check) {
      long bytes = buffers.stream().mapToLong(Tensor::byteSize).max().orElseThrow();
      return new BenchCase(
          bytes,
          part.numel(),
          size(),
          () -> {
            for (int root = 0; root < size(); root++) {
              call.accept(root);
            }
          },
          () -> {
            long wrong = 0;
            for (int root = 0; root < size(); root++) {
              wrong += check.countWrong(root);
            }
            return wrong;
          },
          buffers);
    }

    /** Runs a barrier and returns how many ranks had not reached it when it let this one pass. */
    private long countEarly() {
      String key = name + "/barrier" + barriers++;
      group.store().add(key, 1);
      group.barrier();
      return size() - group.store().add(key, 0);
    }
  }

  /** A function that runs an operation with one root and counts the wrong elements on this rank. */
  private interface RootCheck {
    long countWrong(int root);
  }
}
