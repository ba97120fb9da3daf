#include "src/base/progress_hook.hpp"

#include <vector>

namespace chorale {
namespace {

thread_local std::vector<ProgressHook*> hooks;

}  // namespace

ProgressHook::ProgressHook(std::function<void()> move) : move_(std::move(move)) { hooks.push_back(this); }

ProgressHook::~ProgressHook() { std::erase(hooks, this); }

void run_progress_hooks() {
  for (const ProgressHook* hook : hooks) hook->move_();
}

}  // namespace chorale
