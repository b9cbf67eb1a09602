package dev.tutti.contracts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.attribute.ModuleAttribute;
import java.lang.constant.ClassDesc;
import java.lang.constant.ModuleDesc;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ServiceDeclarationsTest {
  private final Map<String, Path> modules =
      ServiceDeclarations.modulesOnClassPath(getClass().getClassLoader(), "dev.tutti");

  @Test
  void modulesDeclareTheSameServicesTwice() {
    assertThat(modules).containsKeys("dev.tutti", "dev.tutti.testing");
    assertThat(modules.values())
        .allSatisfy(root -> assertThat(ServiceDeclarations.differences(root)).isEmpty());
  }

  @Test
  void differencesOfBothKindsAreNamed(@TempDir Path folder) throws IOException {
    writeModule(folder, "java.util.concurrent.Callable", "org.example.InModule");
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.writeString(
        services.resolve("java.lang.Runnable"), "# comment\norg.example.InFile # why\n\n");
    assertThat(ServiceDeclarations.differences(folder))
        .containsExactly(
            "module example provides java.lang.Runnable with [], but"
                + " META-INF/services/java.lang.Runnable names [org.example.InFile]",
            "module example provides java.util.concurrent.Callable with [org.example.InModule],"
                + " but META-INF/services/java.util.concurrent.Callable names []");
  }

  @Test
  void aFolderWithoutModuleIsRefused(@TempDir Path folder) {
    assertThatThrownBy(() -> ServiceDeclarations.differences(folder))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(folder.toString());
  }

  private static void writeModule(Path folder, String service, String provider) throws IOException {
    ModuleAttribute module =
        ModuleAttribute.of(
            ModuleDesc.of("example"),
            builder -> {
              builder.requires(ModuleDesc.of("java.base"), 0, null);
              builder.provides(ClassDesc.of(service), ClassDesc.of(provider));
            });
    Files.write(folder.resolve("module-info.class"), ClassFile.of().buildModule(module));
    Files.createFile(Files.createDirectories(folder.resolve("org/example")).resolve("A.class"));
  }
}
