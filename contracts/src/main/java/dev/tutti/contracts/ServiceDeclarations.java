package dev.tutti.contracts;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.module.ModuleDescriptor;
import java.lang.module.ModuleFinder;
import java.lang.module.ModuleReader;
import java.lang.module.ModuleReference;
import java.net.JarURLConnection;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * A comparison of the services that modules declare with {@code provides} and those in their {@code
 * META-INF/services}, so that a jar offers the same services on the module path and on the class
 * path.
 */
public final class ServiceDeclarations {
  private static final String FOLDER = "META-INF/services/";

  private ServiceDeclarations() {}

  /**
   * Finds the modules on the class path.
   *
   * @param loader the loader of the class path
   * @param prefix the start of the names of the wanted modules, such as {@code dev.tutti}
   * @return the root of each module, a folder or a jar, by module name
   * @throws UncheckedIOException if the class path cannot be read
   */
  public static Map<String, Path> modulesOnClassPath(ClassLoader loader, String prefix) {
    Map<String, Path> roots = new TreeMap<>();
    try {
      for (URL url : Collections.list(loader.getResources("module-info.class"))) {
        if (url.getProtocol().equals("jrt")) {
          continue;
        }
        Path root = rootOf(url);
        String name = reference(root).descriptor().name();
        if (name.startsWith(prefix)) {
          roots.put(name, root);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return roots;
  }

  /**
   * Lists, in words, the differences between the two declarations of a module.
   *
   * @param root the root of the module, a folder of classes or a jar
   * @return one line for each service that differs, so empty if there are no differences
   * @throws UncheckedIOException if the module cannot be read
   */
  public static List<String> differences(Path root) {
    ModuleReference reference = reference(root);
    Map<String, List<String>> provides = new TreeMap<>();
    for (ModuleDescriptor.Provides entry : reference.descriptor().provides()) {
      provides.put(entry.service(), sorted(entry.providers()));
    }
    Map<String, List<String>> files = serviceFiles(reference);
    TreeSet<String> services = new TreeSet<>(provides.keySet());
    services.addAll(files.keySet());
    List<String> differences = new ArrayList<>();
    for (String service : services) {
      List<String> inModule = provides.getOrDefault(service, List.of());
      List<String> inFile = files.getOrDefault(service, List.of());
      if (!inModule.equals(inFile)) {
        differences.add(
            "module %s provides %s with %s, but %s%s names %s"
                .formatted(
                    reference.descriptor().name(), service, inModule, FOLDER, service, inFile));
      }
    }
    return differences;
  }

  private static Map<String, List<String>> serviceFiles(ModuleReference reference) {
    Map<String, List<String>> files = new TreeMap<>();
    try (ModuleReader reader = reference.open()) {
      List<String> names = reader.list().filter(name -> name.startsWith(FOLDER)).toList();
      for (String name : names) {
        String service = name.substring(FOLDER.length());
        if (service.isEmpty() || service.contains("/")) {
          continue;
        }
        try (InputStream in = reader.open(name).orElseThrow()) {
          files.put(service, providerLines(new String(in.readAllBytes(), UTF_8)));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return files;
  }

  private static List<String> providerLines(String text) {
    return sorted(
        text.lines()
            .map(line -> line.replaceFirst("#.*", "").strip())
            .filter(line -> !line.isEmpty())
            .toList());
  }

  private static List<String> sorted(List<String> names) {
    return names.stream().sorted().toList();
  }

  private static ModuleReference reference(Path root) {
    return ModuleFinder.of(root).findAll().stream()
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no module in " + root));
  }

  private static Path rootOf(URL moduleInfo) throws IOException {
    try {
      if (moduleInfo.openConnection() instanceof JarURLConnection jar) {
        return Path.of(jar.getJarFileURL().toURI());
      }
      URI uri = moduleInfo.toURI();
      return Path.of(uri.resolve("."));
    } catch (URISyntaxException e) {
      throw new IOException("cannot locate " + moduleInfo, e);
    }
  }
}
