// Whether the tests are built with a sanitizer that reserves terabytes of addresses and keeps freed memory.
#pragma once

namespace chorale::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

}  // namespace chorale::test
