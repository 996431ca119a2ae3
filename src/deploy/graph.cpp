#include "deploy/graph.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace lockstep::deploy {

namespace {

template <class Value>
std::vector<std::byte> bytes_from(std::span<Value const> values) {
    auto const bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
}

template <class Value>
std::span<Value const> values_as(std::vector<std::byte> const& bytes) {
    return {reinterpret_cast<Value const*>(bytes.data()), bytes.size() / sizeof(Value)};
}

} // namespace

std::size_t bytes_of(Element element) {
    switch (element) {
    case Element::f32:
        return 4;
    case Element::i64:
    case Element::f64:
        return 8;
    case Element::u8:
    case Element::boolean:
    case Element::i8:
        break;
    }
    return 1;
}

std::int64_t elements(Shape const& shape) {
    std::int64_t count = 1;
    for (auto const& extent : shape) {
        count *= extent.count;
    }
    return count;
}

std::vector<std::int64_t> extents_of(Shape const& shape) {
    std::vector<std::int64_t> extents;
    for (auto const& extent : shape) {
        extents.push_back(extent.count);
    }
    return extents;
}

Shape fixed_shape(std::vector<std::int64_t> const& extents) {
    Shape shape;
    for (auto const extent : extents) {
        shape.push_back({extent, false});
    }
    return shape;
}

Shape broadcast(Shape const& a, Shape const& b) {
    Shape result(std::max(a.size(), b.size()));
    for (std::size_t back = 1; back <= result.size(); ++back) {
        auto const one = back <= a.size() ? a[a.size() - back] : Extent{};
        auto const other = back <= b.size() ? b[b.size() - back] : Extent{};
        auto const repeats = [](Extent const& extent) { return extent == Extent{}; };
        if (!(one == other) && !repeats(one) && !repeats(other)) {
            throw std::invalid_argument("shapes do not match");
        }
        result[result.size() - back] = repeats(one) ? other : one;
    }
    return result;
}

std::span<float const> Tensor::reals() const {
    return values_as<float>(values);
}

std::span<double const> Tensor::doubles() const {
    return values_as<double>(values);
}

std::span<std::int64_t const> Tensor::wholes() const {
    return values_as<std::int64_t>(values);
}

std::int64_t Node::whole(std::string const& name) const {
    return std::get<std::int64_t>(attributes.at(name));
}

double Node::real(std::string const& name) const {
    return std::get<double>(attributes.at(name));
}

std::vector<std::int64_t> const& Node::wholes(std::string const& name) const {
    return std::get<std::vector<std::int64_t>>(attributes.at(name));
}

TensorId Graph::input(std::string name, Element element, Shape shape) {
    inputs_.push_back(tensors_.size());
    tensors_.push_back({std::move(name), element, std::move(shape)});
    return inputs_.back();
}

TensorId Graph::constant(std::string name, Element element, Shape shape,
                         std::vector<std::byte> values) {
    bool const taken =
        std::ranges::any_of(tensors_, [&](Tensor const& tensor) { return tensor.name == name; });
    if (name.empty() || taken || name == "outputs") {
        name = "/c" + std::to_string(tensors_.size());
    }
    tensors_.push_back({std::move(name), element, std::move(shape), std::move(values), true});
    return tensors_.size() - 1;
}

TensorId Graph::reals(std::vector<float> const& values, std::vector<std::int64_t> const& extents) {
    return constant({}, Element::f32, fixed_shape(extents), bytes_from<float>(values));
}

TensorId Graph::doubles(std::vector<double> const& values,
                        std::vector<std::int64_t> const& extents) {
    return constant({}, Element::f64, fixed_shape(extents), bytes_from<double>(values));
}

TensorId Graph::whole(std::int64_t value) {
    return constant({}, Element::i64, {}, bytes_from<std::int64_t>({&value, 1}));
}

TensorId Graph::add(std::string kind, std::vector<TensorId> inputs,
                    std::pair<Element, Shape> result, Attributes attributes) {
    auto const id = tensors_.size();
    tensors_.push_back({"/t" + std::to_string(id), result.first, std::move(result.second)});
    nodes_.push_back({std::move(kind), std::move(inputs), id, std::move(attributes)});
    return id;
}

void Graph::set_output(TensorId id) {
    output_ = id;
    tensors_.at(id).name = "outputs";
}

void Graph::replace_nodes(std::vector<Node> nodes) {
    nodes_ = std::move(nodes);
}

} // namespace lockstep::deploy
