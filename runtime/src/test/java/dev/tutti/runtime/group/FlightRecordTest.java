package dev.tutti.runtime.group;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.tutti.CallOptions;
import dev.tutti.GroupListener;
import dev.tutti.ProcessGroup;
import dev.tutti.ReduceOp;
import dev.tutti.Settings;
import dev.tutti.Tensor;
import dev.tutti.Work;
import dev.tutti.runtime.settings.RuntimeSettings;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests what the flight record contains, and when and where it is written. */
@Timeout(300)
class FlightRecordTest {
  @TempDir Path folder;

  private static ScriptedProvider withPath() {
    ScriptedProvider provider = new ScriptedProvider();
    provider.allReduce = (op, tensor) -> op.took("scripted/ring");
    return provider;
  }

  @Test
  void itHasFieldsOfC10d() {
    try (ProcessGroup group = withPath().join(2)) {
      group.allReduce(Tensor.of(1f, 2f, 3f).view(3, 1), ReduceOp.MAX);
      group.allGatherInto(Tensor.of(0d, 0d), Tensor.of(1d));
      group.send(Tensor.of(1L, 2L), 1, 7);
      String record = group.diagnostics().flightRecord();
      assertThat(record)
          .startsWith("{\"version\":\"2.10\",\"comm_lib_version\":\"tutti\",\"rank\":0,")
          .contains("\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"default_pg\"")
          .contains("\"ranks\":\"[0, 1]\"")
          .contains("\"last_completed_collective\":2")
          .contains("\"process_group\":[\"0\",\"default_pg\"]")
          .contains("\"profiling_name\":\"nccl:all_reduce\"")
          .contains("\"input_sizes\":[[3,1]],\"input_dtypes\":[\"Float\"],\"output_sizes\":[[3,1]]")
          .contains("\"path\":\"scripted/ring\",\"reduce_op\":\"MAX\"")
          .contains("\"input_sizes\":[[1]],\"input_dtypes\":[\"Double\"],\"output_sizes\":[[2]]")
          .contains("\"profiling_name\":\"nccl:send 0->1\",\"is_p2p\":true")
          .contains("\"collective_seq_id\":2,\"p2p_seq_id\":1")
          .contains("\"peer\":1,\"tag\":7")
          .contains("\"state\":\"completed\",\"work_state\":\"COMPLETED\",\"retired\":true")
          .contains("\"backend\":\"scripted\"");
    }
  }

  @Test
  void theLastSizesAreThoseOfTheLastCall() {
    try (ProcessGroup group = withPath().alone("TUTTI_FLIGHT_RECORD", "1")) {
      group.allReduceCoalesced(List.of(Tensor.of(1f), Tensor.of(1f, 2f)), ReduceOp.SUM);
    } catch (UnsupportedOperationException e) {
      assertThat(e).hasMessageContaining("oalesced");
    }
    try (ProcessGroup group = withPath().alone("TUTTI_FLIGHT_RECORD", "1")) {
      group.allGather(List.of(Tensor.of(0f, 0f)), Tensor.of(1f, 2f));
      assertThat(group.diagnostics().flightRecord()).contains("\"output_sizes\":[[2]]");
      group.allReduce(Tensor.of(1f));
      assertThat(group.diagnostics().flightRecord())
          .contains("\"input_sizes\":[[1]]", "\"output_sizes\":[[1]]")
          .doesNotContain("[[2]]");
      group.barrier();
      assertThat(group.diagnostics().flightRecord())
          .contains("\"input_sizes\":[]", "\"output_sizes\":[]", "nccl:all_reduce_barrier");
    }
  }

  @Test
  void aSynchronousCollectiveOfOneTensorIsNotTimedIfItNeverWaits() {
    Tensor one = Tensor.of(1f);
    try (ProcessGroup group = withPath().alone()) {
      group.broadcast(one, 0);
      group.allReduce(one);
      group.reduce(one, ReduceOp.SUM, 0);
      group.allGatherInto(Tensor.of(0f), one);
      group.reduceScatterInto(Tensor.of(0f), one, ReduceOp.SUM);
      group.barrier();
      assertThat(group.diagnostics().flightRecord().split("\"state\":\"completed\"", -1))
          .hasSize(7);
      assertThat(group.diagnostics().flightRecord().split("\"duration_ms\":null", -1)).hasSize(7);
    }
  }

  @Test
  void theSizeMayBeGivenByNamesOfC10d() {
    assertThat(size(Map.of())).isEqualTo(256);
    assertThat(size(Map.of("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000"))).isEqualTo(2000);
    assertThat(size(Map.of("TORCH_FR_BUFFER_SIZE", "20", "TORCH_NCCL_TRACE_BUFFER_SIZE", "2000")))
        .isEqualTo(20);
    assertThat(size(Map.of("TORCH_FR_BUFFER_SIZE", "20", "TUTTI_FLIGHT_RECORD", "30")))
        .isEqualTo(30);
    assertThat(size(Map.of("TORCH_FR_BUFFER_SIZE", "0"))).isEqualTo(1);
    assertThat(catchThrowable(() -> size(Map.of("TORCH_FR_BUFFER_SIZE", "many"))))
        .hasMessageContaining("TORCH_FR_BUFFER_SIZE");
  }

  private static int size(Map<String, String> environment) {
    return RuntimeSettings.flightRecord(Settings.ofEnvironment(environment));
  }

  @Test
  void aWorkAndAListenerKnowThePath() throws Exception {
    try (ProcessGroup group = withPath().alone()) {
      CompletableFuture<String> heard = new CompletableFuture<>();
      group.addListener(
          new GroupListener() {
            @Override
            public void after(OpEvent event, Outcome outcome) {
              heard.complete(outcome.path().orElse("none"));
            }
          });
      Work work = group.allReduce(Tensor.of(1f), ReduceOp.SUM, CallOptions.ASYNC);
      work.await();
      assertThat(work.path()).hasValue("scripted/ring");
      assertThat(heard.get(60, TimeUnit.SECONDS)).isEqualTo("scripted/ring");
    }
  }

  @Test
  void itIsWrittenOnCommand() throws Exception {
    try (ProcessGroup group = withPath().join(2)) {
      group.allReduce(Tensor.of(1f));
      group.send(Tensor.of(1f), 1, 0);
      Path prefix = folder.resolve("new/trace_rank_");
      List<Path> files = group.diagnostics().dumpFlightRecord(prefix);
      assertThat(files)
          .containsExactly(
              folder.resolve("new/trace_rank_0"), folder.resolve("new/flight-record-0.json"));
      assertThat(Files.readString(files.get(1))).contains("nccl:all_reduce", "nccl:send 0->1");
      String pickle = Files.readString(files.get(0), StandardCharsets.ISO_8859_1);
      assertThat(pickle).contains("nccl:all_reduce").doesNotContain("nccl:send");
      try (var all = Files.list(folder.resolve("new"))) {
        assertThat(all).hasSize(2);
      }
    }
  }

  /** {@code torchfrtrace} compares sizes and types with those of ranks of PyTorch. */
  @Test
  void forTorchABarrierHasTheTensorOfC10d() throws Exception {
    try (ProcessGroup group = withPath().alone()) {
      group.barrier();
      String pickle =
          Files.readString(
              group.diagnostics().dumpFlightRecord(folder.resolve("barrier_")).get(0),
              StandardCharsets.ISO_8859_1);
      assertThat(pickle)
          .contains("nccl:all_reduce_barrier")
          .containsPattern("(?s)input_dtypes.{1,20}Float");
      assertThat(group.diagnostics().flightRecord()).contains("\"input_dtypes\":[]");
    }
  }

  @Test
  void itIsWrittenAtTheCloseIfAsked() {
    Path closed = folder.resolve("closed/rank_");
    withPath()
        .alone("TUTTI_FLIGHT_RECORD_DUMP", closed.toString(), "TUTTI_FLIGHT_RECORD_ON_CLOSE", "1")
        .close();
    assertThat(folder.resolve("closed/rank_0")).exists();
    withPath().alone("TUTTI_FLIGHT_RECORD_DUMP", folder.resolve("not/rank_").toString()).close();
    assertThat(folder.resolve("not")).doesNotExist();
  }
}
