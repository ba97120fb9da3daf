// The common part of the backends shm and threads, which use mapped memory. The two backends differ in how a rank accesses
// another rank's memory (Reach), and in how ranks exchange numbers during set-up.
#pragma once
#include "collectives/backends/mapped/group.hpp"

namespace chorale::mapped {

class MappedTransport : public Transport {
 public:
  explicit MappedTransport(std::shared_ptr<FlagPages> pages) : pages_(std::move(pages)) {}

  Memory& memory() override { return pages_->reach().memory().memory(); }
  bool plans_for_all() const override { return true; }
  void share_cores() override { reach().staged_up_to = usual_ = staged_bytes_on_shared_cores; }
  void stage_up_to(std::int64_t bytes) override { reach().staged_up_to = bytes < 0 ? usual_ : bytes; }
  Reach& reach() const { return pages_->reach(); }

  std::int64_t offer(int members) override {
    page_ = pages_->create(members);
    return static_cast<std::int64_t>(pages_->reach().locate(page_.data()));
  }
  std::unique_ptr<Group> join(const Membership& membership) override {
    return std::make_unique<MappedGroup>(pages_, membership, std::move(page_));
  }

 private:
  std::shared_ptr<FlagPages> pages_;
  std::int64_t usual_ = usual_staged_bytes;
  Buffer page_;  // the new flag page, between offer() and join()
};

}  // namespace chorale::mapped
