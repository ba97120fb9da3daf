// Memory devices, the categories of memory, and the Ledger, which counts the bytes that a rank holds.
//
//   Ledger (per rank)      params  grads  optimizer  activations  comm  workspace  data
//     current, peak           …      …        …            …        …        …       …     against one limit
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace chorale {

struct Device {
  enum class Kind : std::uint8_t { host, pinned, cuda, file };
  Kind kind = Kind::host;
  int index = 0;
  bool operator==(const Device&) const = default;
  bool is_host() const { return kind != Kind::cuda && kind != Kind::file; }  // whether the CPU can access this memory
};
std::string name_of(Device device);  // "host", "cuda:1"

enum class Category : std::uint8_t { params, grads, optimizer, activations, comm, workspace, data };
inline constexpr const char* category_names[] = {"params", "grads", "optimizer", "activations", "comm", "workspace", "data"};
inline constexpr std::size_t categories = std::size(category_names);

// Counts the bytes that one rank holds. Only one thread may use a Ledger.
class Ledger {
 public:
  explicit Ledger(std::int64_t limit_bytes = 0) : limit_(limit_bytes) {}  // 0 means no limit

  bool allows(std::int64_t bytes) const { return limit_ == 0 || bytes <= limit_ - total_; }
  void add(Category category, std::int64_t bytes);  // `bytes` is negative when memory is freed

  std::int64_t current(Category category) const { return current_[static_cast<std::size_t>(category)]; }
  std::int64_t peak(Category category) const { return peak_[static_cast<std::size_t>(category)]; }
  std::int64_t total() const { return total_; }
  std::int64_t total_peak() const { return total_peak_; }
  // Returns the category's bytes at the time when the total first reached its peak. The sum over all categories is
  // total_peak().
  std::int64_t at_peak(Category category) const { return at_peak_[static_cast<std::size_t>(category)]; }
  std::int64_t limit() const { return limit_; }
  std::string summary() const;  // "params 1.0 GiB, grads 512.0 MiB": the memory held now

 private:
  std::int64_t limit_;
  std::int64_t total_ = 0, total_peak_ = 0;
  std::array<std::int64_t, categories> current_{}, peak_{}, at_peak_{};
};

}  // namespace chorale
