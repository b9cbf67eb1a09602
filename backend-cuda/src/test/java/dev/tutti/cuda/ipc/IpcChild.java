package dev.tutti.cuda.ipc;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.Cuda;
import dev.tutti.cuda.CudaDevice;
import dev.tutti.cuda.FakeMachine;
import dev.tutti.cuda.Fds;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * Shares and opens tensors on commands read from its input, one per line, and answers each with a
 * line: {@code open HANDLE}, {@code close}, {@code cycle HANDLE}, which does both, {@code share
 * NUMBER}, {@code state}, {@code end}, which closes the sharing.
 */
final class IpcChild {
  static final String JOB = "job of the tests";

  private final CudaDevice device;
  private final CudaIpc ipc;
  private final List<ReceivedTensor> open = new ArrayList<>();
  private final List<SharedTensor> shared = new ArrayList<>();

  private IpcChild(Cuda cuda) {
    device = cuda.device(0);
    ipc = CudaIpc.create(cuda, JOB);
  }

  /** Takes the argument {@code fake} or {@code gpu}. */
  public static void main(String[] args) throws IOException {
    IpcChild child = new IpcChild(args[0].equals("fake") ? new FakeMachine(1).cuda : Cuda.get());
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(child.answer(line.split(" ", -1)));
    }
    System.exit(0);
  }

  private String answer(String[] words) {
    try {
      return switch (words[0]) {
        case "open" -> open(words[1]);
        case "close" -> close();
        case "cycle" -> cycle(words[1]);
        case "end" -> end();
        case "state" -> "open " + ipc.openCount() + " descriptors " + Fds.open().size();
        default -> share(words[1]);
      };
    } catch (CudaIpcException e) {
      return "refused " + e.reason();
    } catch (RuntimeException | IOException e) {
      return "failed " + e;
    }
  }

  private String open(String handle) {
    ReceivedTensor tensor = ipc.open(HexFormat.of().parseHex(handle));
    open.add(tensor);
    float[] seen = device.tensors().toHost(tensor.tensor()).toFloatArray();
    return "opened " + seen[seen.length - 1];
  }

  private String close() {
    open.forEach(ReceivedTensor::close);
    open.clear();
    return "closed";
  }

  private String end() {
    ipc.close();
    return "ended";
  }

  private String cycle(String handle) {
    byte[] bytes = HexFormat.of().parseHex(handle);
    long start = System.nanoTime();
    ReceivedTensor received = ipc.open(bytes);
    long opened = System.nanoTime();
    Tensor tensor = received.tensor();
    Tensor last = device.tensors().toHost(tensor.narrow(0, tensor.numel() - 1, 1));
    long read = System.nanoTime();
    received.close();
    return "cycled %s %d %d"
        .formatted(last.toFloatArray()[0], opened - start, System.nanoTime() - read);
  }

  private String share(String number) {
    Tensor host = Tensor.allocate(DType.FLOAT32, 1000).fill(Float.parseFloat(number));
    Tensor tensor = ipc.allocate(device, DType.FLOAT32, 1000);
    device.tensors().copyFromHost(tensor, host);
    SharedTensor sent = ipc.share(tensor);
    shared.add(sent);
    return "shared " + HexFormat.of().formatHex(sent.handle());
  }
}
