package dev.tutti.gloo;

import dev.tutti.AllReduceAlgorithm;
import dev.tutti.Capabilities.Feature;
import dev.tutti.Device;
import dev.tutti.ReduceOp;
import dev.tutti.Store;
import dev.tutti.SymmetricMemory;
import dev.tutti.Tensor;
import dev.tutti.gloo.spi.GlooDeviceProvider;
import dev.tutti.gloo.spi.GlooGroup;
import dev.tutti.spi.Backend;
import dev.tutti.spi.BackendContext;
import dev.tutti.spi.DeviceEvent;
import dev.tutti.spi.Operation;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Gives each operation to who serves the device of its tensors; others are opened when they are
 * first needed.
 */
final class DeviceDispatch implements Backend {
  private static final String DEVICE_KEY = "tutti/device/";
  private static final String NONE = "-";

  private final Backend host;
  private final Map<String, GlooDeviceProvider> providers;
  private final BackendContext context;
  private final boolean isAllTutti;
  private final Map<String, Backend> opened = new ConcurrentHashMap<>();
  private @Nullable Throwable aborted;

  /**
   * Creates the dispatch of a rank; ranks of Tutti do at once.
   *
   * @param host runs the operations on host tensors
   * @param providers by kind of device
   * @param context of the group
   * @param isAllTutti whether all ranks are of Tutti
   */
  DeviceDispatch(
      Backend host,
      Map<String, GlooDeviceProvider> providers,
      BackendContext context,
      boolean isAllTutti) {
    this.host = host;
    this.providers = providers;
    this.context = context;
    this.isAllTutti = isAllTutti;
    if (isAllTutti) {
      openIfAllDo();
    }
  }

  /**
   * Tells the other ranks, all of Tutti, that nobody serves the device of this one, which they
   * would wait to hear.
   */
  static void servesNone(BackendContext context) {
    context.store().set(DEVICE_KEY + context.rank(), NONE);
  }

  /** Opens the kind of device that all ranks gave and serve, if they did. */
  private void openIfAllDo() {
    Store store = context.store();
    String own = context.device().type();
    GlooDeviceProvider provider = providers.get(own);
    if (provider == null) {
      servesNone(context);
      return;
    }
    store.set(DEVICE_KEY + context.rank(), own);
    List<String> keys = new ArrayList<>(context.size());
    for (int r = 0; r < context.size(); r++) {
      keys.add(DEVICE_KEY + r);
    }
    List<byte[]> all = store.multiGet(keys, context.timeout());
    if (all.stream().allMatch(each -> own.equals(new String(each, StandardCharsets.UTF_8)))) {
      opened.put(own, provider.open(new GlooGroup(context, host, true, true)));
    }
  }

  private Backend of(Tensor tensor) {
    return tensor.device().isCpu() ? host : of(tensor.device());
  }

  private Backend of(Device device) {
    Backend known = opened.get(device.type());
    return known == null ? open(device) : known;
  }

  private synchronized Backend open(Device device) {
    Backend known = opened.get(device.type());
    if (known == null) {
      GlooDeviceProvider provider = providers.get(device.type());
      if (provider == null) {
        throw new UnsupportedOperationException("no module serves " + device + " in Gloo groups");
      }
      known = provider.open(new GlooGroup(context, host, isAllTutti, false));
      opened.put(device.type(), known);
      if (aborted != null) {
        known.abort(aborted);
      }
    }
    return known;
  }

  @Override
  public @Nullable DeviceEvent callerEvent(Device device) {
    return of(device).callerEvent(device);
  }

  @Override
  public void broadcast(Operation op, Tensor tensor, int root) throws Exception {
    of(tensor).broadcast(op, tensor, root);
  }

  @Override
  public void allReduce(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    of(tensor).allReduce(op, tensor, reduceOp);
  }

  @Override
  public void allReduce(
      Operation op, Tensor tensor, ReduceOp reduceOp, AllReduceAlgorithm algorithm)
      throws Exception {
    of(tensor).allReduce(op, tensor, reduceOp, algorithm);
  }

  @Override
  public Optional<String> reasonAgainst(
      AllReduceAlgorithm algorithm, Tensor tensor, ReduceOp reduceOp) {
    return of(tensor).reasonAgainst(algorithm, tensor, reduceOp);
  }

  @Override
  public void allReduceSparse(Operation op, Tensor tensor, ReduceOp reduceOp) throws Exception {
    of(tensor).allReduceSparse(op, tensor, reduceOp);
  }

  @Override
  public void allReduceCoalesced(Operation op, List<Tensor> tensors, ReduceOp reduceOp)
      throws Exception {
    of(tensors.get(0)).allReduceCoalesced(op, tensors, reduceOp);
  }

  @Override
  public void reduce(Operation op, Tensor tensor, ReduceOp reduceOp, int root) throws Exception {
    of(tensor).reduce(op, tensor, reduceOp, root);
  }

  @Override
  public void allGather(Operation op, List<Tensor> outputs, Tensor input) throws Exception {
    of(input).allGather(op, outputs, input);
  }

  @Override
  public void allGatherInto(Operation op, Tensor output, Tensor input) throws Exception {
    of(input).allGatherInto(op, output, input);
  }

  @Override
  public void allGatherIntoCoalesced(Operation op, List<Tensor> outputs, List<Tensor> inputs)
      throws Exception {
    of(inputs.get(0)).allGatherIntoCoalesced(op, outputs, inputs);
  }

  @Override
  public void gather(Operation op, List<Tensor> outputs, Tensor input, int root) throws Exception {
    of(input).gather(op, outputs, input, root);
  }

  @Override
  public void scatter(Operation op, Tensor output, List<Tensor> inputs, int root) throws Exception {
    of(output).scatter(op, output, inputs, root);
  }

  @Override
  public void reduceScatter(Operation op, Tensor output, List<Tensor> inputs, ReduceOp reduceOp)
      throws Exception {
    of(output).reduceScatter(op, output, inputs, reduceOp);
  }

  @Override
  public void reduceScatterInto(Operation op, Tensor output, Tensor input, ReduceOp reduceOp)
      throws Exception {
    of(output).reduceScatterInto(op, output, input, reduceOp);
  }

  @Override
  public void reduceScatterIntoCoalesced(
      Operation op, List<Tensor> outputs, List<Tensor> inputs, ReduceOp reduceOp) throws Exception {
    of(outputs.get(0)).reduceScatterIntoCoalesced(op, outputs, inputs, reduceOp);
  }

  @Override
  public void allToAll(Operation op, List<Tensor> outputs, List<Tensor> inputs) throws Exception {
    of(outputs.get(0)).allToAll(op, outputs, inputs);
  }

  @Override
  public void allToAllSingle(
      Operation op, Tensor output, Tensor input, long[] outputSplits, long[] inputSplits)
      throws Exception {
    of(output).allToAllSingle(op, output, input, outputSplits, inputSplits);
  }

  @Override
  public void send(Operation op, Tensor tensor, int peer, int tag) {
    of(tensor).send(op, tensor, peer, tag);
  }

  @Override
  public void recv(Operation op, Tensor tensor, int peer, int tag) {
    of(tensor).recv(op, tensor, peer, tag);
  }

  @Override
  public void recvAnySource(Operation op, Tensor tensor, int tag) {
    of(tensor).recvAnySource(op, tensor, tag);
  }

  @Override
  public void barrier(Operation op) throws Exception {
    host.barrier(op);
  }

  @Override
  public void monitoredBarrier(Operation op, boolean waitAllRanks) throws Exception {
    host.monitoredBarrier(op, waitAllRanks);
  }

  @Override
  public boolean await(Operation op, long deadlineNanos) {
    return host.await(op, deadlineNanos);
  }

  @Override
  public void beginBatch() {
    host.beginBatch();
  }

  @Override
  public void endBatch() {
    host.endBatch();
  }

  @Override
  public SymmetricMemory allocateSymmetric(Operation op, long byteSize) throws Exception {
    return host.allocateSymmetric(op, byteSize);
  }

  @Override
  public Map<Feature, String> missingFeatures() {
    return host.missingFeatures();
  }

  @Override
  public void abort(Throwable cause) {
    synchronized (this) {
      aborted = cause;
      opened.values().forEach(each -> each.abort(cause));
    }
    host.abort(cause);
  }

  @Override
  public void close() {
    opened.values().forEach(Backend::close);
    host.close();
  }
}
