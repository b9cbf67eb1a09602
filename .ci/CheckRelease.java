import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/** Checks of each module that is published what Maven Central checks; see .ci/check-release. */
final class CheckRelease {
  private static final int JAVA_25 = 69;

  private final Element parent = pom(Path.of("pom.xml"));
  private final String version = text(parent, "version").orElseThrow();
  private int modules;
  private int failures;

  private CheckRelease() throws Exception {}

  public static void main(String[] args) throws Exception {
    CheckRelease check = new CheckRelease();
    check.module(Path.of(""));
    for (Path folder : modulesOf(check.parent)) {
      check.module(folder);
    }
    if (check.version.endsWith("-SNAPSHOT")) {
      System.out.println(check.version + " is not a release: Maven Central accepts no -SNAPSHOT versions");
    }
    System.out.println(
        check.modules + " modules are published, " + check.failures + " checks failed");
    System.exit(check.failures == 0 ? 0 : 1);
  }

  private void module(Path folder) throws Exception {
    Path pom = folder.resolve("pom.xml");
    Element project = pom(pom);
    String name = text(project, "artifactId").orElseThrow();
    if (text(project, "properties", "maven.deploy.skip").orElse("").equals("true")) {
      System.out.println(name + " is not published");
      return;
    }
    modules++;
    System.out.println(name);
    boolean inherits = text(project, "parent", "artifactId").isPresent();
    value("group", inherits ? text(project, "parent", "groupId") : text(project, "groupId"), pom);
    value(
        "version",
        inherits ? text(project, "parent", "version") : text(project, "version"),
        pom,
        version);
    value("name", text(project, "name"), pom);
    value("description", text(project, "description"), pom);
    inherited("url", project, pom, inherits, "url");
    inherited("license", project, pom, inherits, "licenses", "license", "name");
    inherited("license's url", project, pom, inherits, "licenses", "license", "url");
    inherited("developer", project, pom, inherits, "developers", "developer", "name");
    inherited("scm", project, pom, inherits, "scm", "connection");
    inherited("scm's url", project, pom, inherits, "scm", "url");
    String file = name + "-" + version;
    Path target = folder.resolve("target");
    signed("pom", target.resolve(file + ".pom"));
    if (text(project, "packaging").orElse("jar").equals("jar")) {
      Path jar = target.resolve(file + ".jar");
      signed("jar", jar);
      has("license in it", jar, "META-INF/LICENSE");
      has("notice in it", jar, "META-INF/NOTICE");
      classes(jar);
      Path sources = target.resolve(file + "-sources.jar");
      signed("sources", sources);
      has("license in it", sources, "META-INF/LICENSE");
      has("notice in it", sources, "META-INF/NOTICE");
      has("sources in it", sources, ".java");
      Path javadoc = target.resolve(file + "-javadoc.jar");
      signed("javadoc", javadoc);
      has("pages in it", javadoc, "index.html");
      for (String kind : List.of("json", "xml")) {
        Path bom = target.resolve("bom." + kind);
        signed("SBOM", bom);
        report(
            "SBOM of it",
            Files.exists(bom) && Files.readString(bom).contains(name + "@" + version),
            "",
            bom);
      }
    }
  }

  private void inherited(String what, Element project, Path pom, boolean inherits, String... path) {
    Optional<String> own = text(project, path);
    if (own.isPresent() || !inherits) {
      value(what, own, pom);
    } else {
      value(what, text(parent, path), Path.of("pom.xml"));
    }
  }

  private void value(String what, Optional<String> found, Path file) {
    report(what, found.isPresent(), found.orElse("none"), file);
  }

  private void value(String what, Optional<String> found, Path file, String expected) {
    report(what, found.equals(Optional.of(expected)), found.orElse("none"), file);
  }

  private void signed(String what, Path file) throws IOException, InterruptedException {
    report(what, Files.exists(file), "", file);
    Path signature = Path.of(file + ".asc");
    boolean good =
        Files.exists(signature)
            && new ProcessBuilder("gpg", "--verify", signature.toString(), file.toString())
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start()
                    .waitFor()
                == 0;
    report("signature", good, "", signature);
  }

  private void has(String what, Path jar, String entry) throws IOException {
    boolean found = entries(jar).stream().anyMatch(each -> each.getName().endsWith(entry));
    report(what, found, entry.startsWith(".") ? "" : entry, jar);
  }

  private void classes(Path jar) throws IOException {
    int newest = 0;
    if (Files.exists(jar)) {
      try (JarFile file = new JarFile(jar.toFile())) {
        for (JarEntry entry : entries(jar)) {
          if (entry.getName().endsWith(".class")) {
            try (InputStream in = file.getInputStream(entry)) {
              byte[] start = in.readNBytes(8);
              newest = Math.max(newest, (start[6] & 0xff) << 8 | start[7] & 0xff);
            }
          }
        }
      }
    }
    report("classes", newest == JAVA_25, "version " + newest, jar);
  }

  private static List<JarEntry> entries(Path jar) throws IOException {
    if (!Files.exists(jar)) {
      return List.of();
    }
    try (JarFile file = new JarFile(jar.toFile())) {
      return file.stream().toList();
    }
  }

  private void report(String what, boolean good, String value, Path file) {
    failures += good ? 0 : 1;
    System.out.printf(
        "  %-4s %-14s %s%s%n",
        good ? "ok" : "FAIL", what, value.isEmpty() ? "" : value + "  ", file);
  }

  /** Returns the folders of the modules of the build, and of those that only a release has. */
  private static List<Path> modulesOf(Element project) {
    List<Path> folders = new ArrayList<>(foldersIn(project));
    for (Element profile : children(children(project, "profiles").getFirst(), "profile")) {
      if (text(profile, "id").orElse("").equals("release")) {
        folders.addAll(foldersIn(profile));
      }
    }
    return folders;
  }

  private static List<Path> foldersIn(Element parent) {
    List<Path> folders = new ArrayList<>();
    for (Element module : children(children(parent, "modules").getFirst(), "module")) {
      folders.add(Path.of(module.getTextContent().strip()));
    }
    return folders;
  }

  private static Element pom(Path file) throws Exception {
    try (InputStream in = Files.newInputStream(file)) {
      return DocumentBuilderFactory.newInstance()
          .newDocumentBuilder()
          .parse(in)
          .getDocumentElement();
    }
  }

  private static Optional<String> text(Element from, String... path) {
    Element at = from;
    for (String step : path) {
      List<Element> found = children(at, step);
      if (found.isEmpty()) {
        return Optional.empty();
      }
      at = found.getFirst();
    }
    return Optional.of(at.getTextContent().strip().replaceAll("\\s+", " "))
        .filter(text -> !text.isEmpty());
  }

  private static List<Element> children(Element of, String name) {
    List<Element> found = new ArrayList<>();
    for (Node child = of.getFirstChild(); child != null; child = child.getNextSibling()) {
      if (child instanceof Element element && element.getTagName().equals(name)) {
        found.add(element);
      }
    }
    return found;
  }
}
