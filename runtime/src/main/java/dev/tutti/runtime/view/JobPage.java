package dev.tutti.runtime.view;

import dev.tutti.json.Json;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** The page of a job, which draws a {@link JobView}. */
public final class JobPage {
  private JobPage() {}

  /** Returns a self-contained page that shows one view. */
  public static String of(JobView job) {
    // No text of a record may end the element that holds the data.
    String data = Json.write(job.toMap()).replace("<", "\\u003c");
    return file("job.html")
        .replace(
            "<link rel=\"stylesheet\" href=\"job.css\">", "<style>" + file("job.css") + "</style>")
        .replace(
            "<script src=\"job.js\" defer></script>",
            "<script type=\"application/json\" id=\"data\">" + data + "</script>")
        .replace("</body>", "<script>" + file("job.js") + "</script>\n</body>");
  }

  /**
   * Returns a file of the page.
   *
   * @param name its name: job.html, which names the others, job.css or job.js
   */
  public static String file(String name) {
    try (InputStream in = JobPage.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalArgumentException("there is no resource " + name);
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
