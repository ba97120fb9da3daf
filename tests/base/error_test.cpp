#include "src/base/error.hpp"

#include "src/base/handle.hpp"
#include "src/base/text.hpp"
#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("a usage error is three lines and exits with 2") {
  try {
    usage_error("sizes do not divide", "24 is not a multiple of 16", "try 16 or 32");
  } catch (const Error& error) {
    CHECK(error.exit() == Exit::usage);
    CHECK(describe(error, 3, 4) == "error: sizes do not divide\n  24 is not a multiple of 16\n  try 16 or 32\n");
  }
}

TEST_CASE("any other error names the rank and the place in the source") {
  const Error error(Exit::runtime, "the disk is full", "", "");
  const std::string text = describe(error, 3, 4);
  CHECK(text.find("error: the disk is full\n  rank 3 of 4 on ") == 0);
  CHECK(text.find("tests/base/error_test.cpp:") != std::string::npos);
  CHECK(describe(std::runtime_error("foreign"), 0, 1).find("error: foreign\n  rank 0 of 1 on ") == 0);
}

TEST_CASE("an allocation that fails is described with the limits of the process") {
  const std::string text = describe(std::bad_alloc(), 1, 2);
  CHECK(text.find("error: there is too little memory\n  address space: ") == 0);
  CHECK(text.find(", data segment: ") != std::string::npos);
  CHECK(text.find("\n  raise the limits") < text.find("\n  rank 1 of 2 on "));
}

TEST_CASE("if its condition fails, require throws the sentence with its numbers") {
  CHECK_NOTHROW(require(true, "never shown"));
  CHECK_THROWS_WITH(require(false, "{} is not {}", 3, 4), says("3 is not 4"));
}

TEST_CASE("error text cannot command the terminal") {
  CHECK(escape_control("a\x1b[31mb\x07\nc\t") == "a\\x1b[31mb\\x07\\x0ac\\x09");
  CHECK(escape_control("\xc2\x9b"
                       "2J µ") == "\\x9b2J µ");
  CHECK(std::string(Error(Exit::usage, "x\x1b", "", "").what()) == "x\\x1b");
}

namespace {

int closed = 0;
struct CountingTraits {
  using type = int;
  static type none() { return 0; }
  static void close(type) noexcept { ++closed; }
};

}  // namespace

TEST_CASE("a handle closes exactly once, wherever it was moved") {
  closed = 0;
  {
    Handle<CountingTraits> a(7), b(8);
    Handle<CountingTraits> c = std::move(a);
    CHECK((!a && c.get() == 7));
    c = std::move(b);  // closes handle 7
    CHECK(closed == 1);
    auto& same = c;
    c = std::move(same);
    CHECK(c.get() == 8);
    Handle<CountingTraits> kept(9);
    CHECK(kept.release() == 9);  // from here on, the caller must close handle 9
  }
  CHECK(closed == 2);
}
