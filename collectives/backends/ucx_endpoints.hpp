// A rank's UCX connections: its worker and one endpoint per peer. An endpoint is created at first use; all ranks close their
// endpoints together. While a rank waits for other ranks to close their endpoints, the rank makes progress on its messages,
// because a peer might still need these messages.
#pragma once
#include <ucp/api/ucp.h>

#include <source_location>
#include <vector>

#include "src/base/handle.hpp"
#include "src/base/mpi.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale::ucx {

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
using Context = Handle<ContextTraits>;
using Worker = Handle<WorkerTraits>;

void check(ucs_status_t status, const char* call, std::source_location where = std::source_location::current());
Context open_context(int hosts);  // `hosts`: the number of hosts of the run
bool says_cuda_aware(ucp_context_h context);
Worker open_worker(ucp_context_h context);

class Endpoints {
 public:
  explicit Endpoints(const mpi::Runtime& runtime);  // constructor and destructor are collective
  ~Endpoints();
  ucp_context_h context() const { return context_.get(); }
  ucp_worker_h worker() const { return worker_.get(); }
  ucp_ep_h endpoint(int peer);

 private:
  void close_all() noexcept;
  const mpi::Runtime& runtime_;
  int exceptions_;
  Context context_;
  Worker worker_;
  ProgressHook progress_hook_;  // declared after worker_, so that the hook is destroyed first
  std::vector<char> addresses_;
  std::vector<int> starts_;
  std::vector<ucp_ep_h> ends_;
};

}  // namespace chorale::ucx
