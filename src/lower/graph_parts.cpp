#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "lowered_call.hpp"

namespace lockstep::lower {

using deploy::Element;
using deploy::Extent;
using deploy::Shape;
using Id = GraphParts::Id;

Id GraphParts::unary(std::string const& kind, Id a, deploy::Attributes attributes) {
    return graph_.add(kind, {a}, {graph_[a].element, shape(a)}, std::move(attributes));
}

Id GraphParts::binary(std::string const& kind, Id a, Id b) {
    return graph_.add(kind, {a, b}, {graph_[a].element, deploy::broadcast(shape(a), shape(b))});
}

Id GraphParts::compare(std::string const& kind, Id a, Id b) {
    return graph_.add(kind, {a, b}, {Element::boolean, deploy::broadcast(shape(a), shape(b))});
}

Id GraphParts::where(Id condition, Id a, Id b) {
    auto const found = deploy::broadcast(shape(condition), deploy::broadcast(shape(a), shape(b)));
    return graph_.add("Where", {condition, a, b}, {graph_[a].element, found});
}

Id GraphParts::matmul(Id a, Id b) {
    auto const& left = shape(a);
    auto const& right = shape(b);
    auto found =
        deploy::broadcast({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2});
    if (left.back().batch) {
        nn::refuse_export("a matrix product sums over the batch",
                          "each sample must be computed independently");
    }
    found.push_back(left[left.size() - 2]);
    found.push_back(right.back());
    return graph_.add("MatMul", {a, b}, {Element::f32, found});
}

Id GraphParts::cast(Id a, Element element) {
    return graph_[a].element == element ? a : graph_.add("Cast", {a}, {element, shape(a)});
}

Id GraphParts::reshape(Id a, Shape shape_wanted) {
    if (shape(a) == shape_wanted) {
        return a;
    }
    std::vector<std::int64_t> extents;
    for (auto const& extent : shape_wanted) {
        extents.push_back(extent.batch ? -1 : extent.count);
    }
    if (std::ranges::count(extents, -1) > 1) {
        nn::refuse_export("two dimensions of a shape grow with the batch size", "only one may");
    }
    return graph_.add("Reshape", {a}, {graph_[a].element, std::move(shape_wanted)},
                      {{"shape", extents}});
}

Id GraphParts::transpose(Id a, std::vector<std::int64_t> const& order) {
    if (std::ranges::is_sorted(order)) {
        return a;
    }
    Shape turned;
    for (auto const axis : order) {
        turned.push_back(shape(a)[static_cast<std::size_t>(axis)]);
    }
    return graph_.add("Transpose", {a}, {graph_[a].element, turned}, {{"perm", order}});
}

Id GraphParts::slice(Id a, std::int64_t axis, std::int64_t start, std::int64_t end,
                     std::int64_t step) {
    auto cut = shape(a);
    auto& extent = cut[static_cast<std::size_t>(axis)];
    if (extent.batch) {
        if (start == 0 && step == 1 && end >= extent.count * LoweredCall::batches[1]) {
            return a;
        }
        require_own(a, axis);
    }
    auto const clamped = [&](std::int64_t at) {
        return std::clamp(at < 0 ? at + extent.count : at, std::int64_t{0}, extent.count);
    };
    start = clamped(start);
    end = std::max(clamped(end), start);
    if (start == 0 && end == extent.count && step == 1) {
        return a;
    }
    extent.count = (end - start + step - 1) / step;
    using List = std::vector<std::int64_t>;
    return graph_.add("Slice", {a}, {graph_[a].element, cut},
                      {{"axes", List{axis}},
                       {"starts", List{start}},
                       {"ends", List{end}},
                       {"steps", List{step}}});
}

Id GraphParts::join(std::vector<Id> const& parts, std::int64_t axis) {
    if (parts.size() == 1) {
        return parts.front();
    }
    auto const at = static_cast<std::size_t>(axis);
    auto joined = shape(parts.front());
    // What is the same for all samples is repeated for each where another part is not.
    for (auto const id : parts) {
        for (std::size_t i = 0; i < joined.size(); ++i) {
            if (i != at && shape(id).at(i).batch) {
                joined[i] = shape(id)[i];
            }
        }
    }
    std::int64_t sum = 0;
    std::vector<Id> whole;
    for (auto const id : parts) {
        auto own = joined;
        own[at] = shape(id)[at];
        require_own(id, axis);
        sum += own[at].count;
        whole.push_back(expanded(id, own));
    }
    joined[at].count = sum;
    return graph_.add("Concat", whole, {graph_[parts.front()].element, joined}, {{"axis", axis}});
}

Id GraphParts::reduce(std::string const& kind, Id a, std::vector<std::int64_t> const& axes,
                      bool keep) {
    Shape left;
    for (std::size_t i = 0; i < shape(a).size(); ++i) {
        if (std::ranges::find(axes, static_cast<std::int64_t>(i)) == axes.end()) {
            left.push_back(shape(a)[i]);
        } else {
            require_own(a, static_cast<std::int64_t>(i));
            if (keep) {
                left.push_back({});
            }
        }
    }
    return graph_.add(kind, {a}, {graph_[a].element, left},
                      {{"axes", axes}, {"keepdims", std::int64_t{keep ? 1 : 0}}});
}

Id GraphParts::softmax(std::string const& kind, Id a, std::int64_t axis) {
    require_own(a, axis);
    return unary(kind, a, {{"axis", axis}});
}

Id GraphParts::expanded(Id a, Shape const& wanted) {
    if (shape(a) == wanted) {
        return a;
    }
    for (auto const& extent : wanted) {
        if (extent.batch && extent.count != 1) {
            nn::refuse_export("values are expanded to a multiple of the batch size",
                              "only the batch size itself is supported");
        }
    }
    if (!(deploy::broadcast(shape(a), wanted) == wanted)) {
        nn::refuse_export("the shape of a tensor does not fit the shape to which it is expanded");
    }
    return graph_.add("ExpandAs", {a, graph_.inputs().front()}, {graph_[a].element, wanted},
                      {{"batch", std::int64_t{0}}});
}

Id GraphParts::gather(Id values, Id indices, std::int64_t axis) {
    require_own(values, axis);
    auto const& from = shape(values);
    Shape found(from.begin(), from.begin() + axis);
    found.insert(found.end(), shape(indices).begin(), shape(indices).end());
    found.insert(found.end(), from.begin() + axis + 1, from.end());
    return graph_.add("Gather", {values, indices}, {graph_[values].element, found},
                      {{"axis", axis}});
}

Id GraphParts::padded(Id a, std::vector<std::int64_t> const& pads, double value) {
    auto wider = shape(a);
    for (std::size_t axis = 0; axis < wider.size(); ++axis) {
        auto const more = pads[axis] + pads[axis + wider.size()];
        if (more != 0) {
            require_own(a, static_cast<std::int64_t>(axis));
        }
        wider[axis].count += more;
    }
    if (wider == shape(a)) {
        return a;
    }
    return graph_.add("Pad", {a}, {graph_[a].element, wider}, {{"pads", pads}, {"value", value}});
}

Id GraphParts::wholes(std::vector<std::int64_t> const& values) {
    return wholes(values, {static_cast<std::int64_t>(values.size())});
}

Id GraphParts::wholes(std::vector<std::int64_t> const& values,
                      std::vector<std::int64_t> const& extents) {
    auto const bytes = std::as_bytes(std::span(values));
    return graph_.constant({}, Element::i64, deploy::fixed_shape(extents),
                           {bytes.begin(), bytes.end()});
}

void GraphParts::require_own(Id a, std::int64_t axis) const {
    if (shape(a).at(static_cast<std::size_t>(axis)).batch) {
        nn::refuse_export("it concatenates, splits or sums along the batch dimension",
                          "each sample must be computed independently");
    }
}

} // namespace lockstep::lower
