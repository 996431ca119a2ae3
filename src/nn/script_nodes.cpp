#include "script_nodes.hpp"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <set>

namespace lockstep::nn {

namespace {

namespace jit = torch::jit;

class Walk {
  public:
    explicit Walk(std::function<void(jit::Node&)> const& change) : change_(change) {}

    void function(jit::Function& function) {
        if (function.isGraphFunction() && seen_.insert(&function).second) {
            function.ensure_defined();
            block(*jit::toGraphFunction(function).graph()->block());
        }
    }

  private:
    void block(jit::Block& block) {
        for (auto* const node : block.nodes()) {
            for (auto* const inner : node->blocks()) {
                this->block(*inner);
            }
            if (node->kind() == c10::prim::CallFunction) {
                function(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
            } else if (node->kind() == c10::prim::CallMethod) {
                method(*node);
            }
            change_(*node);
        }
    }

    void method(jit::Node const& call) {
        auto const type = call.input(0)->type()->cast<c10::ClassType>();
        auto* const called = type ? type->findMethod(call.s(c10::attr::name)) : nullptr;
        if (called != nullptr) {
            function(*called);
        }
    }

    std::function<void(jit::Node&)> const& change_;
    std::set<jit::Function const*> seen_;
};

} // namespace

void for_nodes(torch::jit::Module const& module,
               std::function<void(torch::jit::Node& node)> const& change) {
    Walk walk(change);
    for (auto const& part : module.modules()) {
        for (auto const& method : part.get_methods()) {
            walk.function(method.function());
        }
    }
}

} // namespace lockstep::nn
