package dev.tutti.interop.pytorch;

import dev.tutti.CallOptions;
import dev.tutti.ProcessGroup;
import dev.tutti.Tensor;
import dev.tutti.Work;
import java.util.Map;
import java.util.TreeMap;

/** Runs the lines that send and receive, on a rank of Tutti. */
final class LineMessages {
  private static final int RING_TAG = 40;
  private static final int ANY_TAG = 50;

  private final ProcessGroup group;
  private final Line line;
  private final LineTensors tensors;

  LineMessages(ProcessGroup group, Line line, LineTensors tensors) {
    this.group = group;
    this.line = line;
    this.tensors = tensors;
  }

  void exchange() {
    for (int from = 0; from < group.size(); from++) {
      for (int to = 0; to < group.size(); to++) {
        if (group.rank() == from && to != from) {
          group.send(mine(), to, 7 + from, CallOptions.DEFAULT);
        } else if (group.rank() == to && to != from) {
          Tensor received = tensors.empty(line.number(2));
          group.recv(received, from, 7 + from, CallOptions.DEFAULT);
          tensors.result(received);
        }
      }
    }
  }

  void ring() {
    Tensor received = tensors.empty(line.number(2));
    Tensor sent = mine();
    Work sending = group.send(sent, (group.rank() + 1) % group.size(), RING_TAG, CallOptions.ASYNC);
    Work receiving =
        group.recv(
            received,
            (group.rank() + group.size() - 1) % group.size(),
            RING_TAG,
            CallOptions.ASYNC);
    sending.await();
    receiving.await();
    tensors.result(received);
  }

  void anySource() {
    if (group.rank() != line.root()) {
      group.send(mine(), line.root(), ANY_TAG, CallOptions.DEFAULT);
      return;
    }
    Map<Integer, Tensor> bySender = new TreeMap<>();
    for (int i = 1; i < group.size(); i++) {
      Tensor received = tensors.empty(line.number(2));
      Work work = group.recvAnySource(received, ANY_TAG, CallOptions.ASYNC);
      work.await();
      bySender.put(work.sourceRank(), received);
    }
    bySender.values().forEach(tensors::result);
  }

  private Tensor mine() {
    return tensors.toMove(line.number(2));
  }
}
