package dev.tutti;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A process group that forwards every call to another one; the base class of decorators.
 *
 * <p>A subclass overrides only what it changes. A method that {@link ProcessGroup} implements by
 * calling another of its methods, such as {@code broadcast} without options, is not forwarded
 * itself but ends up in that other method. A subclass that overrides the form with {@link
 * CallOptions} therefore covers all forms. The exception is {@link #allReduce(Tensor, ReduceOp)},
 * which has a path of its own that allocates nothing. The groups returned by {@code split}, {@code
 * splitByHost}, {@code subgroup} and {@code reconfigure} are those of the other group.
 *
 * <p>When a minor release adds a method to {@link ProcessGroup}, this class forwards it as well.
 * Threading rules are those of the other group.
 */
public abstract class ForwardingProcessGroup implements ProcessGroup {
  /** Creates a forwarding group. */
  protected ForwardingProcessGroup() {}

  /** Returns the group to which calls are forwarded, which must be the same one each time. */
  protected abstract ProcessGroup delegate();

  @Override
  public int rank() {
    return delegate().rank();
  }

  @Override
  public int size() {
    return delegate().size();
  }

  @Override
  public String name() {
    return delegate().name();
  }

  @Override
  public List<Integer> globalRanks() {
    return delegate().globalRanks();
  }

  @Override
  public Map<String, String> backends() {
    return delegate().backends();
  }

  @Override
  public Capabilities capabilities() {
    return delegate().capabilities();
  }

  @Override
  public Capabilities capabilities(Device device) {
    return delegate().capabilities(device);
  }

  @Override
  public Store store() {
    return delegate().store();
  }

  @Override
  public Duration timeout() {
    return delegate().timeout();
  }

  @Override
  public void setTimeout(Duration timeout) {
    delegate().setTimeout(timeout);
  }

  @Override
  public long sequenceNumber() {
    return delegate().sequenceNumber();
  }

  @Override
  public Work broadcast(Tensor tensor, int root, CallOptions options) {
    return delegate().broadcast(tensor, root, options);
  }

  @Override
  public void allReduce(Tensor tensor, ReduceOp op) {
    delegate().allReduce(tensor, op);
  }

  @Override
  public Work allReduce(Tensor tensor, ReduceOp op, CallOptions options) {
    return delegate().allReduce(tensor, op, options);
  }

  @Override
  public Work allReduceCoalesced(List<Tensor> tensors, ReduceOp op, CallOptions options) {
    return delegate().allReduceCoalesced(tensors, op, options);
  }

  @Override
  public Work reduce(Tensor tensor, ReduceOp op, int root, CallOptions options) {
    return delegate().reduce(tensor, op, root, options);
  }

  @Override
  public Work allGather(List<Tensor> outputs, Tensor input, CallOptions options) {
    return delegate().allGather(outputs, input, options);
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, CallOptions options) {
    return delegate().allGatherInto(output, input, options);
  }

  @Override
  public Work allGatherInto(Tensor output, Tensor input, long[] outputSplits, CallOptions options) {
    return delegate().allGatherInto(output, input, outputSplits, options);
  }

  @Override
  public Work allGatherIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return delegate().allGatherIntoCoalesced(outputs, inputs, options);
  }

  @Override
  public Work gather(List<Tensor> outputs, Tensor input, int root, CallOptions options) {
    return delegate().gather(outputs, input, root, options);
  }

  @Override
  public Work scatter(Tensor output, List<Tensor> inputs, int root, CallOptions options) {
    return delegate().scatter(output, inputs, root, options);
  }

  @Override
  public Work reduceScatter(Tensor output, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return delegate().reduceScatter(output, inputs, op, options);
  }

  @Override
  public Work reduceScatterInto(Tensor output, Tensor input, ReduceOp op, CallOptions options) {
    return delegate().reduceScatterInto(output, input, op, options);
  }

  @Override
  public Work reduceScatterInto(
      Tensor output, Tensor input, long[] inputSplits, ReduceOp op, CallOptions options) {
    return delegate().reduceScatterInto(output, input, inputSplits, op, options);
  }

  @Override
  public Work reduceScatterIntoCoalesced(
      List<Tensor> outputs, List<Tensor> inputs, ReduceOp op, CallOptions options) {
    return delegate().reduceScatterIntoCoalesced(outputs, inputs, op, options);
  }

  @Override
  public Work allToAll(List<Tensor> outputs, List<Tensor> inputs, CallOptions options) {
    return delegate().allToAll(outputs, inputs, options);
  }

  @Override
  public Work allToAllSingle(
      Tensor output, Tensor input, long[] outputSplits, long[] inputSplits, CallOptions options) {
    return delegate().allToAllSingle(output, input, outputSplits, inputSplits, options);
  }

  @Override
  public Work barrier(CallOptions options) {
    return delegate().barrier(options);
  }

  @Override
  public void monitoredBarrier(Duration timeout, MissingRanks named) {
    delegate().monitoredBarrier(timeout, named);
  }

  @Override
  public Work send(Tensor tensor, int peer, int tag, CallOptions options) {
    return delegate().send(tensor, peer, tag, options);
  }

  @Override
  public Work recv(Tensor tensor, int peer, int tag, CallOptions options) {
    return delegate().recv(tensor, peer, tag, options);
  }

  @Override
  public Work recvAnySource(Tensor tensor, int tag, CallOptions options) {
    return delegate().recvAnySource(tensor, tag, options);
  }

  @Override
  public Batch batch() {
    return delegate().batch();
  }

  @Override
  public SymmetricMemory allocateSymmetric(long byteSize) {
    return delegate().allocateSymmetric(byteSize);
  }

  @Override
  public SymmetricMemory allocateSymmetric(long byteSize, String deviceType) {
    return delegate().allocateSymmetric(byteSize, deviceType);
  }

  @Override
  public <T> List<T> allGatherObject(T value, Codec<T> codec) {
    return delegate().allGatherObject(value, codec);
  }

  @Override
  public <T> T broadcastObject(@Nullable T value, int root, Codec<T> codec) {
    return delegate().broadcastObject(value, root, codec);
  }

  @Override
  public <T> List<T> gatherObject(T value, int root, Codec<T> codec) {
    return delegate().gatherObject(value, root, codec);
  }

  @Override
  public <T> T scatterObject(List<T> values, int root, Codec<T> codec) {
    return delegate().scatterObject(values, root, codec);
  }

  @Override
  public <T> void sendObject(T value, int peer, Codec<T> codec) {
    delegate().sendObject(value, peer, codec);
  }

  @Override
  public <T> T recvObject(int peer, Codec<T> codec, int maxBytes) {
    return delegate().recvObject(peer, codec, maxBytes);
  }

  @Override
  public Optional<ProcessGroup> split(int color, int key) {
    return delegate().split(color, key);
  }

  @Override
  public ProcessGroup splitByHost() {
    return delegate().splitByHost();
  }

  @Override
  public Optional<ProcessGroup> subgroup(List<Integer> ranks) {
    return delegate().subgroup(ranks);
  }

  @Override
  public Optional<ProcessGroup> subgroup(List<Integer> ranks, SubgroupOptions options) {
    return delegate().subgroup(ranks, options);
  }

  @Override
  public Registration addListener(GroupListener listener) {
    return delegate().addListener(listener);
  }

  @Override
  public GroupDiagnostics diagnostics() {
    return delegate().diagnostics();
  }

  @Override
  public Optional<TuttiException> failure() {
    return delegate().failure();
  }

  @Override
  public void abort(String reason) {
    delegate().abort(reason);
  }

  @Override
  public void revoke(String reason) {
    delegate().revoke(reason);
  }

  @Override
  public int newcomers() {
    return delegate().newcomers();
  }

  @Override
  public ProcessGroup reconfigure(ReconfigureOptions options) {
    return delegate().reconfigure(options);
  }

  @Override
  public boolean isClosed() {
    return delegate().isClosed();
  }

  @Override
  public void close() {
    delegate().close();
  }
}
