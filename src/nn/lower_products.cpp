#include "nn/lowered_call.hpp"

namespace lockstep::nn {

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

/// addmm: beta · a + alpha · b c
void lower_addmm(LoweredCall& call) {
    if ((call.has(3) && call.number(3) != 1) || (call.has(4) && call.number(4) != 1)) {
        call.refuse("its alpha or beta is not 1");
    }
    call.give(call.binary("Add", call.matmul(call.tensor(1), call.tensor(2)), call.tensor(0)));
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

} // namespace

Lowerings lower_products() {
    Lowerings table{{"aten::linear", lower_linear}, {"aten::addmm", lower_addmm}};
    for (auto const* const name : {"matmul", "mm", "bmm", "mv"}) {
        table[std::string("aten::") + name] = lower_matmul;
    }
    return table;
}

} // namespace lockstep::nn
