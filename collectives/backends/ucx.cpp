// UCX through UCP's tag matching. The probe makes a context and a worker, as a run would: the kernel or a container may
// leave UCX no transport to use.
#include <fmt/format.h>
#include <ucp/api/ucp.h>

#include "collectives/backends/backends.hpp"
#include "src/base/handle.hpp"

namespace chorale {
namespace {

struct ContextTraits {
  using type = ucp_context_h;
  static type none() { return nullptr; }
  static void close(type context) noexcept { ucp_cleanup(context); }
};
struct WorkerTraits {
  using type = ucp_worker_h;
  static type none() { return nullptr; }
  static void close(type worker) noexcept { ucp_worker_destroy(worker); }
};

}  // namespace

Availability probe_ucx() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  const std::string version = fmt::format("UCX {}.{}.{}", major, minor, release);

  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
  wanted.features = UCP_FEATURE_TAG;
  ucp_context_h context = nullptr;
  if (const ucs_status_t status = ucp_init(&wanted, nullptr, &context); status != UCS_OK)
    return {false, fmt::format("{}: ucp_init: {}", version, ucs_status_string(status))};
  const Handle<ContextTraits> own_context(context);

  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  if (const ucs_status_t status = ucp_worker_create(context, &how, &worker); status != UCS_OK)
    return {false, fmt::format("{}: ucp_worker_create: {}", version, ucs_status_string(status))};
  const Handle<WorkerTraits> own_worker(worker);
  return {true, version};
}

}  // namespace chorale
