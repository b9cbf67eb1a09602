package dev.tutti.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Compiles the Java of docs/spark.md and docs/lightgbm.md; LocalWorldTest and others run similar
 * code.
 */
class GuideTest {
  private static final Pattern CODE = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL);
  private static final String AROUND =
      """
      import static com.microsoft.ml.lightgbm.lightgbmlibConstants.*;
      import com.microsoft.ml.lightgbm.*;
      import dev.tutti.*;
      import dev.tutti.lightgbm.*;
      import dev.tutti.spark.*;
      import java.lang.foreign.*;
      import java.util.*;
      import org.apache.spark.api.java.JavaRDD;
      import org.apache.spark.sql.Row;
      class Guide {
        static int columns;
        static int rounds;
        static JavaRDD<Double> rdd;
        static String train(ProcessGroup group, LightGbmNetwork network, Iterator<Row> rows) {
          throw new AssertionError();
        }
      """;

  @ParameterizedTest
  @CsvSource({"spark.md, Iterator<Row>, 3", "lightgbm.md, int, 1", "lightgbm.md, JavaRDD<Row>, 1"})
  void theCodeCompiles(String page, String rows, int blocks, @TempDir Path folder)
      throws Exception {
    StringBuilder program = new StringBuilder(AROUND);
    program.append("  static ").append(rows).append(" rows;\n");
    Matcher code = CODE.matcher(Files.readString(Path.of("..", "..", "docs", page)));
    int count = 0;
    while (code.find()) {
      // A rank of LightGBM has a number of rows; its job in Spark has an RDD of them.
      boolean isJob = code.group(1).contains("mapPartitions");
      if (page.equals("spark.md") || isJob != rows.equals("int")) {
        program.append("  void block").append(count++).append("() {\n");
        program.append(code.group(1)).append("  }\n");
      }
    }
    assertThat(count).isEqualTo(blocks);
    Path file = Files.writeString(folder.resolve("Guide.java"), program.append("}\n"));
    ByteArrayOutputStream errors = new ByteArrayOutputStream();
    int result =
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                errors,
                "-proc:none",
                "-d",
                folder.toString(),
                "-cp",
                TestCluster.classPath(),
                file.toString());
    assertThat(result).as(errors.toString(StandardCharsets.UTF_8)).isZero();
  }
}
