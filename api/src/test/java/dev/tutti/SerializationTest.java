package dev.tutti;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.tutti.spi.BackendProvider;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.NotSerializableException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the values become that a closure carries to another process. */
class SerializationTest {
  private static byte[] written(Object value) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(value);
    }
    return bytes.toByteArray();
  }

  @SuppressWarnings("BanSerializableRead") // what the test itself wrote
  private static Object read(byte[] bytes) throws IOException, ClassNotFoundException {
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
      return in.readObject();
    }
  }

  private static Object copy(Object value) throws IOException, ClassNotFoundException {
    return read(written(value));
  }

  @ParameterizedTest
  @ValueSource(strings = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"})
  void anOperatorIsTheSameConstant(String name) throws Exception {
    ReduceOp op = ReduceOp.ofName(name);
    assertThat(copy(op)).isSameAs(op);
  }

  @Test
  void aFactorStays() throws Exception {
    assertThat(copy(ReduceOp.premulSum(0.3))).isEqualTo(ReduceOp.premulSum(0.3));
  }

  @Test
  void devicesAreEqual() throws Exception {
    assertThat(copy(Device.CPU)).isEqualTo(Device.CPU);
    assertThat(copy(Device.cuda(3))).isEqualTo(Device.cuda(3));
  }

  @Test
  void callOptionsAreTheConstantsOrEqual() throws Exception {
    assertThat(copy(CallOptions.DEFAULT)).isSameAs(CallOptions.DEFAULT);
    assertThat(copy(CallOptions.ASYNC)).isSameAs(CallOptions.ASYNC);
    CallOptions other = CallOptions.timeout(Duration.ofSeconds(7)).withAlgorithm("ring");
    assertThat(copy(other)).isEqualTo(other);
  }

  @Test
  void elementTypesAreEnums() throws Exception {
    assertThat(copy(DType.BFLOAT16)).isSameAs(DType.BFLOAT16);
  }

  @Test
  void settingsCarryNoEnvironment() throws Exception {
    Settings own = Settings.fromEnvironment().with("TUTTI_SLOW", "7s");
    Map.Entry<String, String> variable =
        System.getenv().entrySet().stream()
            .filter(entry -> entry.getValue().length() > 3)
            .findAny()
            .orElseThrow();
    byte[] bytes = written(own);
    assertThat(new String(bytes, StandardCharsets.ISO_8859_1))
        .contains("TUTTI_SLOW")
        .doesNotContain(variable.getValue());
    Settings read = (Settings) read(bytes);
    assertThat(read.text("TUTTI_SLOW")).contains("7s");
    assertThat(read.text(variable.getKey())).contains(variable.getValue());
    assertThat(read.names()).isEqualTo(own.names());
  }

  @Test
  void aMapInPlaceOfTheEnvironmentTravels() throws Exception {
    Settings given = Settings.ofEnvironment(Map.of("RANK", "3")).with("A", "b");
    Settings read = (Settings) copy(given);
    assertThat(read.names()).containsExactlyInAnyOrder("RANK", "A");
    assertThat(read.text("RANK")).contains("3");
    assertThat(read.text("A")).contains("b");
  }

  @Test
  void groupOptionsAreEqual() throws Exception {
    assertThat(copy(GroupOptions.DEFAULT)).isEqualTo(GroupOptions.DEFAULT);
    GroupOptions options =
        GroupOptions.DEFAULT
            .withBackend("gloo")
            .withInitMethod("tcp://127.0.0.1:5")
            .withRank(1)
            .withSize(2)
            .withTimeout(Duration.ofSeconds(9))
            .withDevice(Device.cuda(1));
    assertThat(copy(options)).isEqualTo(options);
    GroupOptions withSettings =
        options.withSettings(Settings.ofEnvironment(Map.of("TUTTI_SLOW", "8s")));
    assertThat(((GroupOptions) copy(withSettings)).settings().text("TUTTI_SLOW")).contains("8s");
  }

  @Test
  void storesAndProvidersDoNotTravel() {
    assertThatThrownBy(() -> written(GroupOptions.DEFAULT.withStore(fake(Store.class))))
        .isInstanceOf(NotSerializableException.class)
        .hasMessage(
            "group options with a store, which belongs to this process; give the URL of one"
                + " (withInitMethod)");
    assertThatThrownBy(
            () -> written(GroupOptions.DEFAULT.withProvider(fake(BackendProvider.class))))
        .isInstanceOf(NotSerializableException.class)
        .hasMessage(
            "group options with a backend provider, which belongs to this process; give its name"
                + " (withBackend)");
  }

  private static <T> T fake(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(
            type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> null));
  }

  @Test
  void invalidOptionsAreRefused() throws Exception {
    byte[] good = written(CallOptions.timeout(Duration.ofSeconds(7)));
    byte[] bad = good.clone();
    int at = indexOf(bad, new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 7});
    bad[at + 1] = (byte) 0x80;
    assertThat(read(good)).isEqualTo(CallOptions.timeout(Duration.ofSeconds(7)));
    assertThatThrownBy(() -> read(bad))
        .isInstanceOf(InvalidObjectException.class)
        .hasMessageContaining("call options with timeout PT-");
  }

  private static int indexOf(byte[] bytes, byte[] part) {
    return new String(bytes, StandardCharsets.ISO_8859_1)
        .indexOf(new String(part, StandardCharsets.ISO_8859_1));
  }
}
