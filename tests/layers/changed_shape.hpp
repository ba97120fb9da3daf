// A shape in which every field differs from its default, for tests that a place which handles shapes forgets no field.
#pragma once
#include <optional>

#include "layers/shape_fields.hpp"

namespace chorale::test {

inline void change(bool& value) { value = !value; }
inline void change(std::int64_t& value) { value += 2; }
inline void change(double& value) { value = value / 2 + 0.25; }
inline void change(ModelFamily& value) { value = ModelFamily::llama; }
inline void change(ScoreFunction& value) { value = ScoreFunction::sigmoid; }
inline void change(BalanceOver& value) { value = BalanceOver::step; }
inline void change(std::optional<ForcedRouting>& value) { value = ForcedRouting::zipf; }

inline ModelShape changed_shape() {
  ModelShape shape;
  const auto change_field = [](const ShapeField&, auto& value) { change(value); };
  each_field(shape, change_field);
  each_field(shape.experts, change_field);
  return shape;
}

}  // namespace chorale::test
