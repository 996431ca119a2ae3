#pragma once

#include "lockstep/nn/plugin.hpp"
#include "lockstep/task/task.hpp"

/// Defines the tasks of a library or a program: LOCKSTEP_TASKS(kind, another_kind) with expressions
/// of type lockstep::task::TaskKind. A deck names them as task.kind = plugin:LIBRARY:NAME, or
/// plugin:self:NAME where they are linked into the program.
#define LOCKSTEP_TASKS(...) LOCKSTEP_PLUGIN(task, lockstep::task::TaskKind, __VA_ARGS__)
