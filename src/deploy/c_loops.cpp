#include "deploy/c_loops.hpp"

#include "base/text.hpp"

namespace lockstep::deploy {

namespace {

/// "p[3 + i0 * 28 + i1]"
std::string element(Operand const& operand) {
    std::vector<std::string> terms;
    if (operand.offset != 0) {
        terms.push_back(std::to_string(operand.offset));
    }
    for (std::size_t i = 0; i < operand.strides.size(); ++i) {
        if (operand.strides[i] == 1) {
            terms.push_back(concat("i", i));
        } else if (operand.strides[i] != 0) {
            terms.push_back(concat("i", i, " * ", operand.strides[i]));
        }
    }
    return concat(operand.pointer, "[", terms.empty() ? "0" : joined(terms, " + "), "]");
}

std::string with_elements(std::string text, std::vector<Operand> const& operands) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
        auto const mark = concat("{", i, "}");
        auto const made = element(operands[i]);
        for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
            text.replace(at, mark.size(), made);
            at += made.size();
        }
    }
    return text;
}

bool run_as_one(std::vector<std::int64_t> const& extents, std::vector<Operand> const& operands,
                std::size_t axis) {
    for (auto const& operand : operands) {
        if (operand.strides[axis] != operand.strides[axis + 1] * extents[axis + 1]) {
            return false;
        }
    }
    return true;
}

} // namespace

std::vector<std::int64_t> strides_of(std::vector<std::int64_t> const& extents) {
    std::vector<std::int64_t> strides(extents.size(), 1);
    for (auto axis = extents.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] * extents[axis];
    }
    return strides;
}

std::vector<std::int64_t> repeated_strides(Shape const& shape,
                                           std::vector<std::int64_t> const& extents) {
    auto const own = extents_of(shape);
    auto const from = strides_of(own);
    std::vector<std::int64_t> strides(extents.size(), 0);
    auto const missing = extents.size() - own.size();
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
        strides[axis + missing] = own[axis] == 1 ? 0 : from[axis];
    }
    return strides;
}

AroundAxis around(std::vector<std::int64_t> const& extents, std::int64_t axis) {
    AroundAxis found;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        auto const at = static_cast<std::int64_t>(i);
        (at < axis ? found.before : at == axis ? found.count : found.behind) *= extents[i];
    }
    return found;
}

std::string loops(std::vector<std::int64_t> extents, std::vector<Operand> operands,
                  std::string const& statement) {
    auto const drop = [&](std::size_t axis) {
        auto const at = static_cast<std::ptrdiff_t>(axis);
        extents.erase(extents.begin() + at);
        for (auto& operand : operands) {
            operand.strides.erase(operand.strides.begin() + at);
        }
    };
    for (auto axis = extents.size(); axis-- > 0;) {
        if (extents[axis] == 1) {
            drop(axis);
        }
    }
    for (auto axis = extents.size(); axis-- > 0;) {
        if (axis + 1 < extents.size() && run_as_one(extents, operands, axis)) {
            extents[axis + 1] *= extents[axis];
            drop(axis);
        }
    }
    std::string text;
    std::string indent = "    "; // deeper each time: compilers warn of what misleads
    for (std::size_t i = 0; i < extents.size(); ++i) {
        text +=
            concat(indent, "for (long i", i, " = 0; i", i, " < ", extents[i], "; ++i", i, ")\n");
        indent += "    ";
    }
    return concat(text, indent, with_elements(statement, operands), "\n");
}

} // namespace lockstep::deploy
