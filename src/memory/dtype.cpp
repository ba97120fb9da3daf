#include "src/memory/dtype.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

std::int64_t size_of(DType dtype) {
  return visit(dtype, []<class T>(Type<T>) { return static_cast<std::int64_t>(sizeof(T)); });
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
  }
  __builtin_unreachable();
}

DType dtype_named(const std::string& name) {
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes) {
    if (name == name_of(dtype)) return dtype;
    names.emplace_back(name_of(dtype));
  }
  usage_error(fmt::format("unknown type \"{}\"", name), "the types are " + join(names, ", "),
              did_you_mean(name, names, "choose one of these"));
}

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace chorale
