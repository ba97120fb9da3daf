// A Handle<Traits> is the only owner of a resource of a library or the operating system (MPI_Comm, hid_t, a file descriptor,
// …). A Handle is move-only and closes its resource exactly once. Traits define the resource type, its "none" value, and how
// to close it:
//
//   struct CommTraits {
//     using type = MPI_Comm;
//     static type none() { return MPI_COMM_NULL; }
//     static void close(type comm) noexcept { PMPI_Comm_free(&comm); }
//   };
#pragma once
#include <utility>

namespace chorale {

template <class Traits>
class Handle {
 public:
  using type = typename Traits::type;

  Handle() = default;
  explicit Handle(type value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Handle() { reset(); }

  type get() const { return value_; }
  explicit operator bool() const { return value_ != Traits::none(); }
  type release() { return std::exchange(value_, Traits::none()); }  // the caller must close the returned resource
  void reset(type value = Traits::none()) {
    if (const type old = std::exchange(value_, value); old != Traits::none()) Traits::close(old);
  }

 private:
  type value_ = Traits::none();
};

}  // namespace chorale
