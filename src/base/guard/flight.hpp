// A rank's access to its flight recorder (flight_page.hpp). Flight records the actions of the rank, and ends the rank's
// waits when the guard finds that the run cannot go on.
//
//   flight.now("step 12")      flight.begin(…) … flight.over(ticket)      flight.heartbeat()      flight.waits(…)
#pragma once
#include <sys/mman.h>

#include <string>
#include <string_view>

#include "src/base/descriptor.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/flight_page.hpp"

namespace chorale {

// Memory that this process shares with the guard of its host.
class SharedPage {
 public:
  SharedPage() = default;
  explicit SharedPage(int file);  // maps the file; throws if the kernel refuses
  SharedPage(SharedPage&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  SharedPage& operator=(SharedPage&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~SharedPage() {
    if (page_) munmap(page_, sizeof(FlightPage));
  }
  FlightPage* operator->() const { return page_; }
  FlightPage& operator*() const { return *page_; }

 private:
  FlightPage* page_ = nullptr;
};

class Flight {
 public:
  Flight(Descriptor line, SharedPage page) : line_(std::move(line)), page_(std::move(page)) {}
  ~Flight();  // tells the guard that this rank has finished

  void now(std::string_view what) {
    put(page_->doing, what);
    heartbeat();
  }
  void record_in(std::string_view folder) { put(page_->folder, folder); }
  void saved(std::string_view checkpoint) {
    put(page_->saved, checkpoint);
    heartbeat();
  }
  void asked_to_end() { page_->asked_to_end = 1; }
  std::uint64_t judged() const { return std::atomic_ref(page_->judged).load(std::memory_order_relaxed); }
  void failed(int exit_code);
  void idle() { std::atomic_ref(page_->idles).store(page_->idles + 1, std::memory_order_relaxed); }
  void heartbeat() { std::atomic_ref(page_->heartbeats).store(page_->heartbeats + 1, std::memory_order_relaxed); }

  struct Group {
    std::uint64_t mark = 0;      // identifier of the group, equal on all members
    FlightMembers members = {};  // the members in readable form: "0-3"
    std::uint64_t number = 0;    // number of this group among all groups of this rank
  };
  Group enter(std::uint64_t mark, std::string_view members);  // records that this rank has joined a new group
  void calls(const Group& group, std::uint64_t sequence);  // records that this rank has made `sequence` calls on the group;
                                                           // the newest call might still be queued
  // Records that a call begins, and returns the ticket of the call.
  std::uint64_t begin(const Group& group, std::uint64_t sequence, std::int64_t bytes, const FlightWords& words);
  void over(std::uint64_t ticket, FlightCall::State state);
  void stands(std::uint64_t ticket, std::uint64_t steps, int awaits);  // records the progress of the call in which this rank
                                                                       // waits

  // Send a message to the guard. ask() returns the guard's reply, or "" if no reply arrives within two seconds.
  void tell(const std::string& text) const;
  std::string ask(const std::string& text) const;

  // Must be called repeatedly while this rank waits. Throws if the run cannot go on.
  void waits(double patience_seconds, std::uint64_t moved, std::uint64_t ticket);
  void goes_on() { page_->waits = 0; }
  // The exit code if the run cannot go on, or 0 if it can.
  int lost() const { return std::atomic_ref(page_->lost).load(std::memory_order_acquire); }
  void throw_if_lost() const;
  // Returns lost() for a rank that ends with `error`. If the error is a consequence of another rank's failure, first waits
  // up to two seconds for the guard to detect that failure.
  int lost_after(const std::exception& error) const;

 private:
  Descriptor line_;  // connection to the guard, which detects the end of this process when the connection closes
  SharedPage page_;
};

}  // namespace chorale
