// The options of a model's shape: a walk over its fields.
#include <fmt/format.h>

#include <optional>

#include <chorale/model.hpp>
#include "layers/shape_fields.hpp"
#include "src/base/options.hpp"

namespace chorale {
namespace {

Option& add(Options& o, const ShapeField& field, bool& value) {
  return field.negated ? o.add_no(field.option, value, field.about) : o.add(field.option, value, field.about);
}
Option& add(Options& o, const ShapeField& field, double& value) {
  return field.none ? o.add(field.option, field.none, value, field.about) : o.add(field.option, value, field.about);
}
Option& add(Options& o, const ShapeField& field, std::int64_t& value) { return o.add(field.option, value, field.about); }
template <Named Enum>
Option& add(Options& o, const ShapeField& field, Enum& value) {
  return o.add(field.option, value, field.about);
}
template <Named Enum>
Option& add(Options& o, const ShapeField& field, std::optional<Enum>& value) {
  return o.add(field.option, field.none, value, field.about);
}

// Declares an option for each field. `dense` returns why experts have no effect, or "".
template <class Fields>
void declare_each(Options& o, Fields& fields, const std::function<std::string()>& dense) {
  each_field(fields, [&](const ShapeField& field, auto& value) {
    Option& option = add(o, field, value).range(field.low, field.high).changes(field.effect).part_of(field.whole);
    switch (field.models) {
      case ShapeField::Models::all: break;
      case ShapeField::Models::llama: option.only_with(o.option("family"), ModelFamily::llama); break;
      case ShapeField::Models::with_experts: option.only_where("a model with experts", dense); break;
      case ShapeField::Models::with_expert_bias: option.only_with(o.option("moe-router-enable-expert-bias"), true); break;
    }
  });
}

std::string text_of(const ShapeField& field, bool value) { return value != field.negated ? "true" : "false"; }
std::string text_of(const ShapeField&, std::int64_t value) { return fmt::format("{}", value); }
std::string text_of(const ShapeField& field, double value) {
  return field.none && value == 0 ? field.none : fmt::format("{}", value);
}
template <Named Enum>
std::string text_of(const ShapeField&, Enum value) {
  return name_of(value);
}
template <Named Enum>
std::string text_of(const ShapeField& field, const std::optional<Enum>& value) {
  return value ? name_of(*value) : field.none;
}

bool has_effect(const ShapeField& field, const ModelShape& shape) {
  switch (field.models) {
    case ShapeField::Models::all: return true;
    case ShapeField::Models::llama: return shape.llama();
    case ShapeField::Models::with_experts: return shape.experts.count > 0;
    case ShapeField::Models::with_expert_bias: return shape.experts.count > 0 && shape.experts.bias;
  }
  __builtin_unreachable();
}

}  // namespace

void ModelShape::declare(Options& o) {
  declare_each(o, *this, {});
  experts.declare(o);
}

void Experts::declare(Options& o) {
  o.section("experts");
  declare_each(o, *this, [this] { return count == 0 ? "num-experts is 0" : ""; });
}

std::vector<std::pair<ShapeField, std::string>> settings_of(const ModelShape& shape) {
  std::vector<std::pair<ShapeField, std::string>> settings;
  const auto tell = [&](const ShapeField& field, const auto& value) {
    settings.emplace_back(field, has_effect(field, shape) ? text_of(field, value) : "");
  };
  each_field(shape, tell);
  each_field(shape.experts, tell);
  return settings;
}

}  // namespace chorale
