#include "experiments/machine_named.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace fs = std::filesystem;

fs::path shared_file(const fs::path& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const fs::path& folder : {program / "experiments", program / "share" / "chorale"})
    if (fs::exists(folder / name, error)) return folder / name;
  return name;
}

std::vector<std::string> known_machines() {
  std::error_code error;
  const fs::path folder = shared_file("machines");
  std::vector<std::string> known;
  if (fs::is_directory(folder, error))
    for (const auto& entry : fs::directory_iterator(folder)) known.push_back(entry.path().stem().string());
  std::ranges::sort(known);
  return known;
}

Machine machine_named(const std::string& name) {
  std::error_code error;
  if (fs::is_regular_file(name, error) || name.find('/') != std::string::npos || name.ends_with(".toml"))
    return machine_for(name);
  const fs::path file = shared_file("machines") / (name + ".toml");
  if (fs::exists(file, error)) return machine_for(file.string());
  const std::vector<std::string> known = known_machines();
  usage_error("there is no such machine", fmt::format("machine {}; known: {}", name, join(known, ", ")),
              did_you_mean(name, known, "name one of these, or a machine file"));
}

System system_named(const std::string& name) {
  const Machine machine = machine_named(name);
  if (!machine.system)
    usage_error("the machine file describes no accelerators", name + " has no [accelerator]",
                "name a machine of docs/machines.md, or add the tables (docs/machine_file.md)");
  return *machine.system;
}

}  // namespace chorale
