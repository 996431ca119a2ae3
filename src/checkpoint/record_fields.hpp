#pragma once

#include "checkpoint/record.hpp"

namespace lockstep::checkpoint {

/// The one list of a record's fields: calls visit(name, field) for each of them. A field that is
/// missing here does not compile.
template <class SomeRecord, class Visitor>
void each_field(SomeRecord& record, Visitor&& visit) {
    auto& [integers, reals, history, deck, notes] = record;
    visit("history", history);
    visit("deck", deck);
    visit("notes", notes);
    visit("integers", integers);
    visit("reals", reals);
}

} // namespace lockstep::checkpoint
