package dev.tutti.kernels;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Proves that the compiled kernels in the jar match the sources and the descriptions. */
class KernelImageTest {
  private static final Path SOURCES = Path.of("src/main/cuda");
  private static final long COMPILER_SECONDS = 100;

  @Test
  void everyArchitectureHasEveryKernelWithItsParameters() {
    Map<String, List<Integer>> described = new TreeMap<>();
    for (Kernel kernel : Kernels.all()) {
      described.put(
          kernel.name(), kernel.parameters().stream().map(p -> p.type().byteSize()).toList());
    }
    List<Fatbin.Member> members = Fatbin.members(KernelImage.read());
    assertThat(members)
        .extracting(Fatbin.Member::toString)
        .containsExactlyInAnyOrder("compute_80", "sm_80", "sm_90", "sm_100", "sm_120");
    for (Fatbin.Member member : members) {
      assertThat(member.kernels()).as("%s", member).isEqualTo(described);
    }
  }

  @Test
  void recordHoldsTheDigestsOfImageAndSources() throws IOException {
    assertThat(KernelImage.record().getProperty("image"))
        .isEqualTo(hex(digest().digest(KernelImage.read())));
    assertThat(KernelImage.record().getProperty("sources"))
        .as("changed sources: run kernels/remake")
        .isEqualTo(digestOfSources());
  }

  /**
   * Compares PTX, from which one program of the same version generates the machine code. It
   * compiles only two types of the reductions, which takes seconds instead of a minute.
   */
  @Test
  @Tag("full")
  void sameCompilerMakesTheSameCode(@TempDir Path folder) throws Exception {
    String recorded = KernelImage.record().getProperty("compiler");
    String found = compilerVersion(folder);
    assumeTrue(
        found.equals(recorded),
        "the image was made by nvcc "
            + recorded
            + ", here is "
            + (found.isEmpty() ? "none" : found));
    try (Stream<String> lines = Files.lines(SOURCES.resolve("kernels.cu"))) {
      Files.write(
          folder.resolve("kernels.cu"),
          lines
              .filter(line -> !line.matches("TUTTI_(REDUCE_TYPE|(OTHER_)?CHUNKS)\\((?!bf16|i64).*"))
              .toList());
    }
    Path ptx = folder.resolve("kernels.ptx");
    Path log = folder.resolve("log");
    Process nvcc =
        new ProcessBuilder(
                Stream.of(
                        List.of("nvcc", "-I", SOURCES.toAbsolutePath().toString()),
                        Arrays.asList(KernelImage.record().getProperty("flags").split(" ", -1)),
                        List.of("-ptx", "-arch=compute_80", "kernels.cu", "-o", ptx.toString()))
                    .flatMap(List::stream)
                    .toList())
            .directory(folder.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile())
            .start();
    try {
      assertThat(nvcc.waitFor(COMPILER_SECONDS, TimeUnit.SECONDS)).isTrue();
      assertThat(nvcc.exitValue()).as(() -> readQuietly(log)).isZero();
    } finally {
      nvcc.destroyForcibly();
    }
    String carried =
        Fatbin.members(KernelImage.read()).stream()
            .filter(Fatbin.Member::ptx)
            .findFirst()
            .orElseThrow()
            .text();
    Map<String, String> compiled = Fatbin.ptxBodies(Files.readString(ptx));
    int ofCopies = 4;
    int ofSomeLanes = 1;
    assertThat(compiled.keySet())
        .hasSize(
            7
                + ElementKernels.all().size()
                + UpdateKernels.all().size()
                + CoalesceKernels.all().size()
                + 2 * 8
                + 4
                + ofCopies
                + ofSomeLanes);
    assertThat(Fatbin.ptxBodies(carried))
        .as("code of the sources is code of the image; else run kernels/remake")
        .containsAllEntriesOf(compiled);
  }

  private static String compilerVersion(Path folder) throws InterruptedException {
    Path answer = folder.resolve("version");
    try {
      Process nvcc =
          new ProcessBuilder("nvcc", "--version")
              .redirectErrorStream(true)
              .redirectOutput(answer.toFile())
              .start();
      try {
        assertThat(nvcc.waitFor(COMPILER_SECONDS, TimeUnit.SECONDS)).isTrue();
      } finally {
        nvcc.destroyForcibly();
      }
      Matcher version = Pattern.compile(", V([0-9.]+)").matcher(Files.readString(answer));
      return version.find() ? version.group(1) : "";
    } catch (IOException noCompiler) {
      return "";
    }
  }

  private static String digestOfSources() throws IOException {
    MessageDigest digest = digest();
    try (Stream<Path> files = Files.list(SOURCES)) {
      for (Path file : files.sorted().toList()) {
        digest.update((file.getFileName() + "\n").getBytes(UTF_8));
        digest.update(Files.readAllBytes(file));
      }
    }
    return hex(digest.digest());
  }

  private static String readQuietly(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }
}
