package dev.tutti.cuda.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.DType;
import dev.tutti.Tensor;
import dev.tutti.cuda.CudaException;
import dev.tutti.cuda.ipc.CudaIpcException.Reason;
import dev.tutti.cuda.share.CounterFile;
import dev.tutti.cuda.share.ProcessMark;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Tests which handles are refused. */
class IpcHandleTest extends IpcPair {
  @Test
  void handlesThatCannotBeOpenedAreRefused() {
    SharedTensor shared = producer.share(tensor());
    byte[] bytes = shared.handle();
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(new byte[5]));
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(new byte[bytes.length]));
    bytes[bytes.length - 40]++;
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(bytes));
    CudaIpc other = new CudaIpc(machine.cuda, "another job of the tests", true);
    refused(Reason.OTHER_JOB, () -> other.open(shared.handle()));
    other.close();
    CudaIpc strict = CudaIpc.create(machine.cuda, IpcChild.JOB);
    refused(Reason.OWN_PROCESS, () -> strict.open(shared.handle()));
    strict.close();
    ReceivedTensor received = consumer.open(shared.handle());
    refused(Reason.USED_UP, () -> consumer.open(shared.handle()));
    refused(Reason.RECEIVED, () -> consumer.share(received.tensor()));
    received.close();
    refused(Reason.USED_UP, () -> consumer.open(shared.handle()));
    SharedTensor back = producer.share(tensor());
    back.close();
    back.close();
    assertThat(back.isReturned()).isTrue();
    refused(Reason.USED_UP, () -> consumer.open(back.handle()));
    assertThat(producer.outstanding()).isZero();
    refused(Reason.NOT_SHARABLE, () -> producer.share(device.tensors().allocate(DType.FLOAT32, 2)));
    assertThatThrownBy(() -> producer.share(Tensor.of(1f)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> CudaIpc.create(machine.cuda, ""))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> CudaIpc.create(machine.cuda, "x"))
        .hasMessage("the token must have at least 16 characters, but has 1");
  }

  @Test
  void handlesOfOtherPlacesAndSizesAreRefused() {
    SharedTensor shared = producer.share(tensor());
    JobSeal seal = new JobSeal(IpcChild.JOB);
    IpcHandle good = IpcHandle.decode(shared.handle(), seal);
    long size = good.allocationBytes();
    refused(
        Reason.OTHER_HOST,
        () -> consumer.open(with(good, 7, good.producer(), "", size, 3).encode(seal)));
    refused(
        Reason.PRODUCER_GONE,
        () -> consumer.open(with(good, good.host(), 5, "", size, 3).encode(seal)));
    refused(
        Reason.NO_DEVICE,
        () -> consumer.open(with(good, good.host(), good.producer(), "x", size, 3).encode(seal)));
    for (long count : new long[] {-1, size, Long.MAX_VALUE}) {
      refused(
          Reason.WRONG_SIZE,
          () ->
              consumer.open(
                  with(good, good.host(), good.producer(), "", size, count).encode(seal)));
    }
    refused(
        Reason.WRONG_SIZE,
        () ->
            consumer.open(with(good, good.host(), good.producer(), "", 2 * size, 3).encode(seal)));
    assertThat(fake.living("opened memory")).isZero();
    consumer.open(shared.handle()).close();
  }

  /** Modifies bytes as another process of the job could, since it has the token. */
  @Test
  void handlesWithTheSealAndWithoutSenseAreRefused() {
    SharedTensor shared = producer.share(tensor());
    SharedTensor free = producer.share(tensor());
    int freeSlot = free.slot;
    free.close();
    JobSeal seal = new JobSeal(IpcChild.JOB);
    IpcHandle good = IpcHandle.decode(shared.handle(), seal);
    for (int slot : new int[] {-1, -72, CounterFile.SLOTS, Integer.MIN_VALUE}) {
      senseless(with(good, slot, good.ticket(), good.memory(), good.event()), seal);
    }
    for (long ticket : new long[] {0, -1, -ProcessMark.own(), Long.MIN_VALUE}) {
      senseless(with(good, freeSlot, ticket, good.memory(), good.event()), seal);
    }
    senseless(with(good, good.slot(), good.ticket(), new byte[63], good.event()), seal);
    senseless(with(good, good.slot(), good.ticket(), good.memory(), new byte[63]), seal);
    Random random = new Random(1);
    byte[] bytes = shared.handle();
    int length = bytes.length - JobSeal.BYTES;
    for (int i = 0; i < 2000; i++) {
      byte[] changed = bytes.clone();
      changed[12 + random.nextInt(length - 12)] = (byte) random.nextInt();
      System.arraycopy(seal.of(changed, length), 0, changed, length, JobSeal.BYTES);
      try {
        consumer.open(changed).close();
        shared.close();
        shared = producer.share(tensor());
        bytes = shared.handle();
      } catch (CudaIpcException | CudaException e) {
        assertThat(e.getMessage()).isNotEmpty();
      }
    }
    consumer.open(shared.handle()).close();
    producer.collect();
    assertThat(producer.outstanding()).isZero();
    assertThat(fake.living("opened memory")).isZero();
  }

  private void senseless(IpcHandle handle, JobSeal seal) {
    refused(Reason.NOT_A_HANDLE, () -> consumer.open(handle.encode(seal)));
  }

  private static IpcHandle with(
      IpcHandle good, int slot, long ticket, byte[] memory, byte[] event) {
    return new IpcHandle(
        good.host(),
        good.producer(),
        good.fd(),
        good.nonce(),
        slot,
        ticket,
        good.pciBusId(),
        memory,
        good.allocationBytes(),
        good.offset(),
        event,
        good.dtype(),
        good.shape());
  }

  private static IpcHandle with(
      IpcHandle good, long host, long process, String bus, long bytes, long count) {
    return new IpcHandle(
        host,
        process,
        good.fd(),
        good.nonce(),
        good.slot(),
        good.ticket(),
        bus.isEmpty() ? good.pciBusId() : bus,
        good.memory(),
        bytes,
        good.offset(),
        good.event(),
        good.dtype(),
        new long[] {count});
  }
}
