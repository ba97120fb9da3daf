#include "collectives/backends/ucx_endpoints.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "src/base/error.hpp"
#include "src/base/polling_barrier.hpp"
#include "src/base/spare_memory.hpp"
#include "src/base/text.hpp"
#include "src/base/topology.hpp"

namespace chorale::ucx {

void check(ucs_status_t status, const char* call, std::source_location where) {
  if (status == UCS_OK) return;
  throw Error(Exit::runtime, "a UCX call failed", fmt::format("{}: {}", call, ucs_status_string(status)),
              "try another backend; UCX_LOG_LEVEL=info in the environment shows more", where);
}

namespace {

// Whether UCX is allowed to use TCP, given the value of UCX_TLS. The value is "all" or a list of transports; a list that
// begins with ^ names the transports to exclude. This check avoids a warning, because UCX warns about settings for
// transports that it does not use.
bool uses_tcp(const char* transports) {
  const std::string_view list = transports ? transports : "all";
  const bool names_tcp = list.find("tcp") != list.npos;
  return list.starts_with('^') ? !names_tcp : names_tcp || list.find("all") != list.npos;
}

// By default, UCX closes a TCP connection if the other host is silent for 28 seconds. However, a host that is paused or
// disconnected for a minute can recover, and the world's timeout decides when to give up. So this function turns off UCX's
// limit. (If a process ends, the kernel closes the connections of the process, and UCX detects the closed connections
// immediately.)
void wait_for_silent_hosts() {
  if (uses_tcp(std::getenv("UCX_TLS"))) setenv("UCX_TCP_KEEPIDLE", "inf", 0);
}

bool may_use_rdma(const char* transports) {
  const std::string_view list = transports ? transports : "all";
  const auto is_rdma = [](std::string_view name) {
    for (const char* prefix : {"rc", "ud", "dc", "ib", "all"})
      if (name.starts_with(prefix)) return true;
    return false;
  };
  if (!list.starts_with('^') && !std::ranges::any_of(split(list, ','), is_rdma)) return false;
  std::error_code none;
  const std::filesystem::path devices = "/sys/class/infiniband";
  return std::filesystem::is_directory(devices, none) && !std::filesystem::is_empty(devices, none);
}

// If a message is longer than UCX's rendezvous threshold, UCX sends the data only after a reply from the receiver. Over TCP,
// the reply queues behind the data that the receiver itself is sending. So if two ranks exchange messages, the two messages
// are sent one after the other. This function raises the threshold to 4 MiB, the default limit of a socket's send buffer
// (net.ipv4.tcp_wmem). If a message below the threshold arrives before its receive is posted, UCX stores a copy on the
// receiver. With RDMA, this function leaves UCX's default threshold unchanged. UCX 1.13 has only one threshold, so the
// threshold also applies to messages within a host. This does not affect shm+ucx, which sends messages within a host without
// UCX.
void send_at_once_over_tcp(int hosts) {
  const char* const transports = std::getenv("UCX_TLS");
  if (hosts > 1 && uses_tcp(transports) && !may_use_rdma(transports)) setenv("UCX_RNDV_THRESH", "4m", 0);
}

}  // namespace

Context open_context(int hosts) {
  wait_for_silent_hosts();
  send_at_once_over_tcp(hosts);
  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
  wanted.features = UCP_FEATURE_TAG;
  require_spare_memory("UCX");
  ucp_context_h context = nullptr;
  check(ucp_init(&wanted, nullptr, &context), "ucp_init");
  return Context(context);
}

bool says_cuda_aware(ucp_context_h context) {
  ucp_context_attr_t known{};
  known.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucp_context_query(context, &known), "ucp_context_query");
  return known.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA);
}

Worker open_worker(ucp_context_h context) {
  ucp_worker_params_t how{};
  how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  how.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context, &how, &worker), "ucp_worker_create");
  return Worker(worker);
}

// Worker addresses differ in length, so ranks exchange the lengths first.
Endpoints::Endpoints(const mpi::Runtime& runtime)
    : runtime_(runtime),
      exceptions_(std::uncaught_exceptions()),
      context_(open_context(topology_of(runtime).hosts())),
      worker_(open_worker(context_.get())),
      progress_hook_([this] { ucp_worker_progress(worker_.get()); }) {
  mpi::polling_barrier(runtime.world());
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_.get(), &address, &length), "ucp_worker_get_address");
  const std::string mine(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_.get(), address);

  const auto size = static_cast<std::size_t>(runtime.size());
  const int own = static_cast<int>(length);
  std::vector<int> lengths(size);
  mpi::complete([&](MPI_Request* done) {
    return PMPI_Iallgather(&own, 1, MPI_INT, lengths.data(), 1, MPI_INT, runtime.world(), done);
  });
  starts_.resize(size);
  std::exclusive_scan(lengths.begin(), lengths.end(), starts_.begin(), 0);
  addresses_.resize(static_cast<std::size_t>(starts_.back() + lengths.back()));
  mpi::complete([&](MPI_Request* done) {
    return PMPI_Iallgatherv(mine.data(), own, MPI_BYTE, addresses_.data(), lengths.data(), starts_.data(), MPI_BYTE,
                            runtime.world(), done);
  });
  ends_.resize(size, nullptr);
}

Endpoints::~Endpoints() {
  // During stack unwinding, only this rank ends. The other ranks do not enter the barrier in close_all().
  if (std::uncaught_exceptions() == exceptions_) {
    close_all();
  } else {
    context_.release();
    worker_.release();
  }
}

ucp_ep_h Endpoints::endpoint(int peer) {
  ucp_ep_h& end = ends_[static_cast<std::size_t>(peer)];
  if (end) return end;
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  how.address = reinterpret_cast<const ucp_address_t*>(addresses_.data() + starts_[static_cast<std::size_t>(peer)]);
  check(ucp_ep_create(worker_.get(), &how, &end), "ucp_ep_create");
  return end;
}

// Delivers all sent messages, then closes the endpoints. The barrier keeps this rank's worker alive until no peer sends to
// this worker.
void Endpoints::close_all() noexcept {
  std::vector<void*> closing;
  for (const ucp_ep_h end : ends_) {
    const ucp_request_param_t how{};  // the default close mode flushes
    void* request = end ? ucp_ep_close_nbx(end, &how) : nullptr;
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (void* request : closing) {
    while (ucp_request_check_status(request) == UCS_INPROGRESS) run_progress_hooks();
    ucp_request_free(request);
  }
  try {
    mpi::polling_barrier(runtime_.world());
  } catch (const Error&) {  // MPI failed, so this rank cannot wait for the other ranks
  }
}

}  // namespace chorale::ucx
