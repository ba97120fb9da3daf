#include "experiments/common/same_hosts.hpp"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "experiments/common/gather_json.hpp"
#include "src/base/crc32c.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/round_up.hpp"
#include "src/base/text.hpp"

namespace chorale {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, host, wall_seconds, objects, files)

namespace {

namespace fs = std::filesystem;
constexpr double most_clock_seconds = 300;

// Returns the build id from the ELF notes of a loaded object, in hexadecimal digits. Returns "" if the object has no build
// id.
std::string build_id(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object.dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(object.dlpi_addr + part.p_vaddr);
    for (const char* const end = at + part.p_memsz; at + sizeof(ElfW(Nhdr)) < end;) {
      const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
      const char* const name = at + sizeof note;
      const auto* const id = reinterpret_cast<const unsigned char*>(name + round_up<std::size_t>(note.n_namesz, 4));
      at = reinterpret_cast<const char*>(id) + round_up<std::size_t>(note.n_descsz, 4);
      if (note.n_type != NT_GNU_BUILD_ID || std::string_view(name, note.n_namesz) != std::string_view("GNU", 4)) continue;
      std::string digits;
      for (unsigned byte = 0; byte < note.n_descsz; ++byte) digits += fmt::format("{:02x}", id[byte]);
      return digits;
    }
  }
  return "";
}

std::string fingerprint_of_file(const fs::path& path) {
  constexpr std::uintmax_t blocks = 64, bytes_of_block = 4096;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return "missing";
  std::vector<char> block(bytes_of_block);
  std::uint32_t sum = 0;
  for (std::uintmax_t i = 0; i < blocks; ++i) {
    const std::uintmax_t start =
        size <= blocks * bytes_of_block ? i * bytes_of_block : (size - bytes_of_block) / (blocks - 1) * i;
    file.clear();
    file.seekg(static_cast<std::streamoff>(start));
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    sum = crc32c(std::as_bytes(std::span(block).first(static_cast<std::size_t>(file.gcount()))), sum);
  }
  return fmt::format("{} bytes, checksum {:08x}", size, sum);
}

// The keys whose values differ between the two maps. A key that exists in only one map is ignored.
std::vector<std::string> differences(const std::map<std::string, std::string>& a,
                                     const std::map<std::string, std::string>& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a)
    if (const auto there = b.find(name); there != b.end() && there->second != value) names.push_back(name);
  return names;
}

// Whether all ranks must use the same build of this object. True for parts of Chorale and for the libraries that send
// messages between ranks.
bool must_match(const std::string& object) {
  constexpr std::string_view starts[] = {"the program", "libchorale", "chorale_cuda", "libmpi", "libopen-",
                                         "mca_",        "libucp",     "libucs",       "libuct", "libucm"};
  return std::ranges::any_of(starts, [&](std::string_view start) { return object.starts_with(start); });
}

// Collective. Rank 0 compares the facts; if they do not match, every rank throws. Rank 0 returns the facts of all ranks.
std::vector<HostFacts> require_alike(const mpi::Runtime& runtime, const HostFacts& mine) {
  std::vector<HostFacts> ranks = gather_json(runtime, mine);
  const auto found = unlike(ranks);
  const std::string lines =
      mpi::broadcast(runtime.world(), found ? join({found->what, found->numbers, found->fix}, "\n") : "");
  if (lines.empty()) return ranks;
  const std::vector<std::string> parts = split(lines, '\n');
  usage_error(parts.at(0), parts.at(1), parts.at(2));
}

}  // namespace

std::map<std::string, std::string> loaded_objects() {
  std::map<std::string, std::string> objects;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        const std::string path = object->dlpi_name;
        const bool is_program = path.empty(), is_file = path.find('/') != std::string::npos;  // false for linux-vdso.so.1
        const std::string id = is_program || is_file ? build_id(*object) : "";
        const std::string name = is_program ? "the program" : fs::path(path).filename().string();
        if (!id.empty()) (*static_cast<std::map<std::string, std::string>*>(into))[name] = id;
        return 0;
      },
      &objects);
  return objects;
}

std::string fingerprint_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return fingerprint_of_file(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_regular_file(error))
      files.push_back(fmt::format("{}: {}", entry.path().filename().string(), fingerprint_of_file(entry.path())));
  std::ranges::sort(files);
  const std::string all = join(files, "\n");
  return fmt::format("{} files, checksum {:08x}", files.size(), crc32c(std::as_bytes(std::span(all))));
}

std::optional<Unlike> unlike(const std::vector<HostFacts>& ranks) {
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const HostFacts &one = ranks[0], &other = ranks[r];
    const auto both = [&](const std::string& here, const std::string& there) {
      return fmt::format("rank 0 on {}: {}; rank {} on {}: {}", one.host, here, r, other.host, there);
    };
    const std::vector<std::string> objects = differences(one.objects, other.objects);
    if (const auto name = std::ranges::find_if(objects, must_match); name != objects.end())
      return Unlike{fmt::format("hosts run different builds of {}", *name),
                    both(one.objects.at(*name).substr(0, 12), other.objects.at(*name).substr(0, 12)),
                    "install the same files on all hosts, or start one from a file system that they share"};
    if (const double apart = other.wall_seconds - one.wall_seconds; std::abs(apart) > most_clock_seconds)
      return Unlike{
          "the clocks of hosts differ",
          fmt::format("rank {} on {} is {} {} rank 0 on {}; {} are allowed", r, other.host, human_seconds(std::abs(apart)),
                      apart > 0 ? "ahead of" : "behind", one.host, human_seconds(most_clock_seconds)),
          "synchronize the clocks, for example with chronyc makestep"};
    for (const std::string& path : differences(one.files, other.files))
      return Unlike{"hosts have different input files", path + ": " + both(one.files.at(path), other.files.at(path)),
                    "copy it to all hosts, or name a file on a file system that they share"};
  }
  return {};
}

std::string other_builds(const std::vector<HostFacts>& ranks) {
  constexpr std::size_t most_named = 3;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    std::vector<std::string> names = differences(ranks[0].objects, ranks[r].objects);
    if (names.empty()) continue;
    const std::size_t more = names.size() - std::min(names.size(), most_named);
    names.resize(names.size() - more);
    return fmt::format("rank 0 on {} and rank {} on {} have different builds of {}{}: results may differ in their last bits",
                       ranks[0].host, r, ranks[r].host, join(names, ", "), more ? fmt::format(" and {} more", more) : "");
  }
  return "";
}

void require_same_hosts(const mpi::Runtime& runtime, const Clock& clock, Log& log) {
  if (runtime.size() == 1) return;
  const HostFacts mine{.host = host_name(), .wall_seconds = clock.wall_seconds(), .objects = loaded_objects()};
  if (const std::string line = other_builds(require_alike(runtime, mine)); !line.empty()) log.warn("{}", line);
}

void require_same_files(const mpi::Runtime& runtime, const std::vector<std::string>& paths) {
  if (runtime.size() == 1) return;
  HostFacts mine{.host = host_name()};
  for (const std::string& path : paths)
    if (!path.empty()) mine.files[path] = fingerprint_of(path);
  require_alike(runtime, mine);
}

}  // namespace chorale
