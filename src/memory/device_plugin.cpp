#include "src/memory/device_plugin.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/mpi.hpp"

namespace chorale {
namespace fs = std::filesystem;

namespace {

constexpr std::string_view mark =
#include "plugin_mark.stamp"
    ;

// Returns the plugin's path: next to the program or libchorale.so (whichever contains this code), or in lib/chorale of the
// installation.
fs::path beside_us() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  Dl_info here{};
  const bool known = dladdr(mark.data(), &here) != 0;
  const fs::path file = known ? fs::canonical(here.dli_fname, error) : fs::path();
  const fs::path library = file.empty() ? program : file.parent_path();
  for (const fs::path& path : {program / "chorale_cuda.so", program.parent_path() / "lib/chorale/chorale_cuda.so",
                               library / "chorale_cuda.so", library / "chorale/chorale_cuda.so"})
    if (fs::exists(path, error)) return path;
  return {};
}

}  // namespace

DevicePlugin::DevicePlugin() {
  const char* named = std::getenv("CHORALE_CUDA_PLUGIN");
  why_not_ = named ? "" : built("without_cuda");
  if (!why_not_.empty()) return;  // this build has no plugin, so any plugin file belongs to a different build
  const fs::path path = named ? fs::path(named) : beside_us();
  why_not_ = "the CUDA plugin is neither beside the program nor beside libchorale.so (make all builds it)";
  if (path.empty()) return;
  // Loads all kernels now rather than at the first launch. Lazy loading can wait for the device while an NCCL kernel on the
  // device waits for a peer. If that peer waits for this rank, the ranks deadlock.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  library_.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  why_not_ = library_ ? "" : dlerror();
  if (!library_) return;
  auto* const its_mark = find<PluginMarkFunction>("chorale_cuda_mark");
  if (its_mark && mark == its_mark()) return;
  why_not_ = "the CUDA plugin was built from different sources (make all builds it)";
  library_.reset();
}

void DevicePlugin::refuse(const char* name) const {
  usage_error("CUDA is not available", why_not_.empty() ? fmt::format("the CUDA plugin lacks {}", name) : why_not_,
              "use --device cpu, or build on a machine with the CUDA Toolkit");
}

void* DevicePlugin::symbol(const char* name) const { return library_ ? dlsym(library_.get(), name) : nullptr; }

void device_error(const std::string& what, const std::string& numbers, const std::string& fix) {
  throw Error(Exit::runtime, what, numbers, fix);
}

std::unique_ptr<Memory> cuda_memory(const DevicePlugin& plugin, int index) {
  return std::unique_ptr<Memory>(plugin.require<CudaMemoryFunction>("chorale_cuda_memory")(index));
}

std::vector<CudaDevice> cuda_devices(const DevicePlugin& plugin, std::string* why_none) {
  constexpr int most = 64;
  std::vector<CudaDevice> devices(most);
  char reason[256] = "";
  auto* list = plugin.find<CudaDevicesFunction>("chorale_cuda_devices");
  const int found = list ? list(devices.data(), most, reason) : -1;
  if (found <= 0) *why_none = !plugin.why_not().empty() ? plugin.why_not() : *reason ? reason : "CUDA finds no device";
  devices.resize(static_cast<std::size_t>(std::clamp(found, 0, most)));
  return devices;
}

DeviceShare share_of_devices(const mpi::Runtime& runtime, const std::vector<CudaDevice>& devices) {
  const auto [place, ranks] = mpi::place_on_host(runtime.world());
  return {place, ranks, static_cast<int>(devices.size())};
}

std::shared_ptr<Memory> cuda_memory(int index) { return cuda_memory(DevicePlugin(), index); }

}  // namespace chorale
