#include "lowered_call.hpp"

namespace lockstep::lower {

namespace {

using deploy::Element;

void lower_linear(LoweredCall& call) {
    auto const x = call.tensor(0);
    auto const weight = call.tensor(1);
    bool const flat = call.shape(x).size() == 2;
    auto const turned =
        call[weight].constant ? call.transposed_constant(weight) : call.transpose(weight, {1, 0});
    if (call.shape(x).size() < 2) {
        call.refuse("its input has no batch dimension");
    }
    if (flat && call.has(2)) {
        call.give(call.graph().add("Gemm", {x, turned, call.tensor(2)},
                                   {Element::f32, call.result_shape()}));
        return;
    }
    auto const product = call.matmul(x, turned);
    call.give(call.has(2) ? call.binary("Add", product, call.tensor(2)) : product);
}

/// addmm and baddbmm: beta · a + alpha · b c; where beta is 0, a may hold anything
void lower_addmm(LoweredCall& call) {
    if (call.result_element() != Element::f32) {
        call.refuse("it multiplies whole numbers");
    }
    auto const scaled = [&](GraphParts::Id id, double factor) {
        return factor == 1 ? id : call.binary("Mul", id, call.graph().real(factor));
    };
    auto const factor = [&](std::size_t at) { return call.has(at) ? call.number(at) : 1; };
    auto const product = scaled(call.matmul(call.tensor(1), call.tensor(2)), factor(4));
    auto const beta = factor(3);
    call.give(beta == 0 ? product : call.binary("Add", product, scaled(call.tensor(0), beta)));
}

void lower_matmul(LoweredCall& call) {
    auto a = call.tensor(0);
    auto b = call.tensor(1);
    if (call.shape(a).size() == 1) {
        auto row = call.shape(a);
        row.insert(row.begin(), deploy::Extent{});
        a = call.reshape(a, row);
    }
    if (call.shape(b).size() == 1) {
        auto column = call.shape(b);
        column.push_back({});
        b = call.reshape(b, column);
    }
    auto const product = call.matmul(a, b);
    auto const wanted = call.result_shape();
    call.give(call.shape(product).size() == wanted.size() ? product
                                                          : call.reshape(product, wanted));
}

/// Σ a[i] weight[o, i, j] b[j], of (a, b, weight, bias)
void lower_bilinear(LoweredCall& call) {
    auto const a = call.tensor(0);
    auto const weight = call.tensor(2);
    auto const form = call.shape(weight);
    auto const flat = call.reshape(weight, {{form[0].count * form[1].count, false}, form[2]});
    auto wide = call.result_shape();
    wide.push_back(form[1]);
    auto const of_b = call.reshape(call.matmul(call.tensor(1), call.transpose(flat, {1, 0})), wide);
    auto row = call.shape(a);
    row.insert(row.end() - 1, deploy::Extent{});
    auto const products = call.binary("Mul", of_b, call.reshape(a, row));
    auto const last = static_cast<std::int64_t>(wide.size()) - 1;
    auto const sums = call.reduce("ReduceSum", products, {last}, false);
    call.give(call.has(3) ? call.binary("Add", sums, call.tensor(3)) : sums);
}

} // namespace

Lowerings lower_products() {
    Lowerings table{{"aten::linear", lower_linear},
                    {"aten::bilinear", lower_bilinear},
                    {"aten::addmm", lower_addmm},
                    {"aten::baddbmm", lower_addmm}};
    for (auto const* const name : {"matmul", "mm", "bmm", "mv"}) {
        table[std::string("aten::") + name] = lower_matmul;
    }
    return table;
}

} // namespace lockstep::lower
