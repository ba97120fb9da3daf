// Whether the tests are built with the address or thread sanitizer. These sanitizers reserve terabytes of address space and
// delay the reuse of freed memory.
#pragma once

namespace chorale::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

}  // namespace chorale::test
