// Operations on mapped memory. A MappedGroup (group.hpp) prepares eager operations for small data, and mapped operations for
// all other data. Both execute a Program (program.hpp), one call after the other.
#pragma once
#include "collectives/backends/mapped/group.hpp"
#include "collectives/backends/mapped/program.hpp"
#include "src/base/index.hpp"

namespace chorale::mapped {

std::unique_ptr<Operation> eager_operation(MappedGroup& group, const Plan& plan, Program program);
std::unique_ptr<Operation> mapped_operation(MappedGroup& group, const Plan& plan, Program program);

// The common part of both operations: a program, and the call that runs it now. The functions that progress() calls are not
// virtual, because a small call takes less than a microsecond.
class ProgramOperation : public Operation {
 public:
  void start(const Run& run) final;
  std::uint64_t moved() const final { return moved_; }
  void examine() override;
  void abandon() noexcept final;

 protected:
  ProgramOperation(MappedGroup& group, const Plan& plan, Program program);
  bool enter_slot();   // occupies this call's slot; returns false if another member still uses the slot
  Slot& leave_slot();  // ends the call; returns the slot of the next call

  MappedGroup& group_;
  const Plan plan_;
  const std::int64_t element_;
  const Program program_;
  std::vector<const void*> sources_;  // room for the addresses of one step's sources

  // The current run:
  Run run_;
  Slot* slot_ = nullptr;
  bool running_ = false, entered_ = false;
  std::uint64_t moved_ = 0, tag_ = 0;
  std::size_t first_open_ = 0;
};

}  // namespace chorale::mapped
