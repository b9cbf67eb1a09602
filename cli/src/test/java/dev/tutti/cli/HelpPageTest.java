package dev.tutti.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.tutti.store.JobToken;
import dev.tutti.tls.TlsSettings;
import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Keeps the help page correct: the code has the messages that the page explains. */
class HelpPageTest {
  private static final Pattern MESSAGE = Pattern.compile("^### `(.*)`$", Pattern.MULTILINE);

  /** The separator between two parts of a text that is written on several lines. */
  private static final Pattern JOIN = Pattern.compile("\"\\s*\\+\\s*\"|\"\\s*\\\\?\\n\\s*\"");

  /** A placeholder for a value in a format. */
  private static final Pattern VALUE = Pattern.compile("…|'…'");

  @Test
  void theCodeHasTheMessages() throws IOException {
    Path root = SourceTree.root();
    String code = sources(root);
    List<String> unknown = new ArrayList<>();
    int messages = 0;
    Matcher message = MESSAGE.matcher(Files.readString(root.resolve("docs/help.md")));
    while (message.find()) {
      messages++;
      for (String part : VALUE.split(message.group(1))) {
        String text = part.strip().replaceAll("^[:;,] ?|[:;,]$", "");
        if (!code.contains(text)) {
          unknown.add("'" + text + "' of " + message.group(1));
        }
      }
    }
    assertThat(unknown).isEmpty();
    assertThat(messages).isGreaterThan(25);
  }

  private static String sources(Path root) throws IOException {
    StringBuilder code = new StringBuilder(8 << 20);
    Files.walkFileTree(
        root,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes attributes) {
            String name = folder.getFileName().toString();
            boolean isOther =
                name.equals("test")
                    || name.equals("target")
                    || name.equals("node_modules")
                    || (name.startsWith(".") && !folder.equals(root));
            return isOther ? FileVisitResult.SKIP_SUBTREE : FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            String name = file.getFileName().toString();
            if (name.endsWith(".java") || name.equals("find-jdk")) {
              code.append(Files.readString(file)).append('\n');
            }
            return FileVisitResult.CONTINUE;
          }
        });
    return JOIN.matcher(code)
        .replaceAll("")
        .replaceAll("JobToken\\.SETTING\\.name\\(\\)\\s*\\+ \"", JobToken.SETTING.name())
        .replaceAll("TlsSettings\\.ENABLED\\.name\\(\\)\\s*\\+ \"", TlsSettings.ENABLED.name())
        .replaceAll("\\\\\"", "\"");
  }
}
