#pragma once

#include "lockstep/task/task.hpp"

namespace lockstep::test {

/// What a data set with one label a sample offers: 5, 3 and 2 samples of classes a, b and c.
inline task::Samples three_classes() {
    return {.inputs = {{.name = "inputs", .type = h5::Type::f32, .shape = {3}}},
            .targets = {{.name = "targets", .type = h5::Type::i64, .shape = {}, .whole = true}},
            .class_names = {"a", "b", "c"},
            .class_counts = {5, 3, 2}};
}

} // namespace lockstep::test
