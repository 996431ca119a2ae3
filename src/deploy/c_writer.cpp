#include "deploy/c_writer.hpp"

#include "base/letter_case.hpp"
#include "base/text.hpp"
#include "deploy/c_statements.hpp"
#include "deploy/c_values.hpp"

#include <algorithm>
#include <cctype>
#include <span>

namespace lockstep::deploy {

namespace {

constexpr std::uint64_t patch_bytes = 2;

/// A text as a literal of C, plain ASCII.
std::string literal(std::string const& text) {
    std::string made = "\"";
    for (char const letter : text) {
        auto const code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\' || letter == '?') {
            made += concat("\\", letter);
        } else if (code >= 0x20 && code < 0x7F) {
            made.push_back(letter);
        } else { // three digits end there, whatever follows
            made += concat("\\", code / 64, code / 8 % 8, code % 8);
        }
    }
    return made + "\"";
}

/// A text inside a comment, which it must not end.
std::string commented(std::string text) {
    for (auto at = text.find("*/"); at != std::string::npos; at = text.find("*/", at)) {
        text.replace(at, 2, "*\\u002f");
    }
    std::replace_if(
        text.begin(), text.end(),
        [](unsigned char letter) { return letter < 0x20 || letter >= 0x7F; }, '?');
    return text;
}

double value_at(Tensor const& tensor, std::int64_t at) {
    if (tensor.element == Element::f32) {
        return static_cast<double>(tensor.reals()[static_cast<std::size_t>(at)]);
    }
    if (tensor.element == Element::f64) {
        return tensor.doubles()[static_cast<std::size_t>(at)];
    }
    if (tensor.element == Element::i64) {
        return static_cast<double>(tensor.wholes()[static_cast<std::size_t>(at)]);
    }
    auto const byte = std::to_integer<std::uint8_t>(tensor.values[static_cast<std::size_t>(at)]);
    return tensor.element == Element::i8 ? static_cast<std::int8_t>(byte) : byte;
}

std::string constant_text(TensorId id, Tensor const& tensor) {
    auto const count = elements(tensor.shape);
    auto text = concat("static const ", c_type(tensor.element), " c", id, "[", count, "] = {");
    bool const dense = tensor.element == Element::i8;
    for (std::int64_t at = 0; at < count; ++at) {
        text += at % (dense ? 24 : 8) == 0 ? "\n    " : dense ? "" : " ";
        text += tensor.element == Element::i64
                    ? concat("INT64_C(", tensor.wholes()[static_cast<std::size_t>(at)], ")")
                    : c_number(value_at(tensor, at), tensor.element);
        text += ",";
    }
    return text + "\n};\n";
}

std::string constants_of(Graph const& graph) {
    std::set<TensorId> used;
    for (auto const& node : graph.nodes()) {
        used.insert(node.inputs.begin(), node.inputs.end());
    }
    std::string text;
    for (auto const id : used) {
        if (graph[id].constant) {
            text += constant_text(id, graph[id]);
        }
    }
    return text;
}

std::string memory_of(MemoryPlan const& plan) {
    std::string text;
    for (auto const& [element, name] : {std::pair{Element::f32, "reals"},
                                        {Element::i64, "wholes"},
                                        {Element::u8, "bytes"},
                                        {Element::boolean, "flags"}}) {
        if (plan.size(element) > 0) {
            text += concat("static ", c_type(element), " ", name, "[", plan.size(element), "];\n");
        }
    }
    return text;
}

/// An input as all three files write it.
struct Input {
    std::string parameter; ///< "inputs", "in_image"
    std::string suffix;    ///< of the constant for its number of values: "", "_image"
    std::string type;
    std::int64_t values = 0; ///< of a sample

    std::string macro(std::string const& name) const {
        return concat(upper_case(name), "_INPUTS", upper_case(suffix));
    }
};

/// Fortran, which has no capitals, takes names of up to 63 letters.
std::vector<Input> named(std::vector<CInput> const& inputs) {
    constexpr std::size_t longest = 32;
    if (inputs.size() == 1) {
        return {{"inputs", "", c_type(inputs.front().element)}};
    }
    std::vector<Input> made;
    for (auto const& input : inputs) {
        auto const plain = lower_case(c_name(input.name)).substr(0, longest);
        auto const label = untaken_name(plain, [&](std::string const& each) {
            return std::ranges::count(made, "_" + each, &Input::suffix) > 0;
        });
        made.push_back({"in_" + label, "_" + label, c_type(input.element)});
    }
    return made;
}

std::vector<Input> inputs_of(Graph const& graph) {
    std::vector<CInput> inputs;
    for (auto const id : graph.inputs()) {
        inputs.push_back({graph[id].name, graph[id].element});
    }
    auto made = named(inputs);
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i].values = elements(graph[graph.inputs()[i]].shape);
    }
    return made;
}

/// What a function gives for each input, in a list.
template <class Give>
std::string listed(std::vector<Input> const& inputs, std::string const& between, Give give) {
    std::vector<std::string> texts;
    for (auto const& input : inputs) {
        texts.push_back(give(input));
    }
    return joined(texts, between);
}

std::string parameters(std::vector<Input> const& inputs) {
    return listed(inputs, ", ", [](Input const& input) {
        return concat("const ", input.type, " *", input.parameter);
    });
}

/// What stands in both files.
struct Facts {
    std::string name;
    std::vector<Input> inputs;
    std::int64_t outputs = 0;
    std::uint64_t memory = 0;
    std::string told; ///< one line, JSON, for those who read the file again

    std::string first_lines() const {
        auto const in = listed(inputs, " and ", [](Input const& input) {
            return concat(input.values, " values (", input.type, ")");
        });
        return concat("/* Written by lockstep. lockstep-export ", commented(told), "\n   ", in,
                      " in, ", outputs, " float out, for each sample. ", memory,
                      " bytes of static memory for\n   the values between layers, besides the "
                      "weights;\n   only one thread at a time may run the model. */\n");
    }
};

std::string header_of(Facts const& facts) {
    auto const& name = facts.name;
    auto const capitals = upper_case(name);
    auto const sizes = listed(facts.inputs, "", [&](Input const& input) {
        return concat("#define ", input.macro(name), " ", input.values, "\n");
    });
    return concat(facts.first_lines(), "#ifndef ", capitals, "_H\n#define ", capitals,
                  "_H\n#include <stddef.h>\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" "
                  "{\n#endif\n\n",
                  sizes, "#define ", capitals, "_OUTPUTS ", facts.outputs,
                  "\n\n/* Computes the outputs of `samples` samples, stored one after the other. "
                  "Returns 0, or 1 if\n   a whole number among the inputs is out of range. */\n"
                  "int ",
                  name, "_run(size_t samples, ", parameters(facts.inputs),
                  ", float *outputs);\n\n/* Bytes of static memory besides the weights. "
                  "*/\nsize_t ",
                  name,
                  "_memory(void);\n\n/* The name of a class; null if it has none. */\n"
                  "const char *",
                  name, "_class(int number);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

std::string fortran_of(Facts const& facts) {
    auto const type = [](Input const& input) {
        return input.type == "float"     ? "real(c_float)"
               : input.type == "double"  ? "real(c_double)"
               : input.type == "int64_t" ? "integer(c_int64_t)"
                                         : "integer(c_int8_t)";
    };
    auto const& name = facts.name;
    auto const sizes = listed(facts.inputs, "", [](Input const& input) {
        return concat("  integer, parameter :: model_inputs", input.suffix, " = ", input.values,
                      "\n");
    });
    auto const arguments = listed(facts.inputs, "", [](Input const& input) {
        return concat("        ", input.parameter, ", &\n");
    });
    auto const declared = listed(facts.inputs, "", [&](Input const& input) {
        return concat("      ", type(input), ", intent(in) :: ", input.parameter, "(*)\n");
    });
    return concat(
        "! Written by lockstep: interfaces to ", name, ".c\nmodule ", name,
        "_model\n  use, intrinsic :: iso_c_binding\n  implicit none\n", sizes,
        "  integer, parameter :: model_outputs = ", facts.outputs,
        "\n  interface\n    ! Returns 0, or 1 if a whole number among the inputs is out of "
        "range\n    integer(c_int) function run_model(samples, &\n",
        arguments, "        outputs) bind(c, name='", name,
        "_run')\n      import\n      integer(c_size_t), value :: samples\n", declared,
        "      real(c_float), intent(out) :: outputs(*)\n    end "
        "function\n    integer(c_size_t) function model_memory() bind(c, name='",
        name, "_memory')\n      import\n    end function\n  end interface\nend module ", name,
        "_model\n");
}

std::string classes_of(Graph const& graph, std::string const& name) {
    std::string names;
    std::size_t count = 0;
    for (auto const& each : graph.class_names) {
        names += concat("        ", literal(each), ",\n");
        ++count;
    }
    auto const head = concat("\nconst char *", name, "_class(int number)\n{\n");
    if (count == 0) {
        return head + "    (void)number;\n    return 0;\n}\n";
    }
    return concat(head, "    static const char *const names[] = {\n", names,
                  "    };\n    return number < 0 || number >= ", count,
                  " ? 0 : names[number];\n}\n");
}

/// As the statements name them.
std::string parameters_of_one(Graph const& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
        text += concat("const ", c_type(graph[graph.inputs()[i]].element), " *input", i, ", ");
    }
    return text;
}

/// Compilers warn of parameters that no statement reads.
std::string unread(Graph const& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
        bool const is_read = std::ranges::any_of(graph.nodes(), [&](Node const& node) {
            auto const count = node.kind == "ExpandAs" ? 1 : node.inputs.size();
            return std::ranges::count(std::span(node.inputs).first(count), graph.inputs()[i]) > 0;
        });
        text += is_read ? std::string() : concat("    (void)input", i, ";\n");
    }
    return text;
}

} // namespace

CSource c_source(Graph const& graph, std::string const& stem) {
    auto const name = c_name(stem);
    MemoryPlan const plan(graph);
    CStatements statements(graph, plan);
    std::string body;
    for (auto const& node : graph.nodes()) {
        body += statements.of(node);
    }
    auto const told = graph.facts.find("lockstep");
    Facts const facts{name, inputs_of(graph), elements(graph[graph.output()].shape),
                      plan.bytes() + static_cast<std::uint64_t>(statements.patch()) * patch_bytes,
                      told == graph.facts.end() ? std::string() : told->second};
    auto text = concat(facts.first_lines(), "#include \"", stem,
                       ".h\"\n\n#include <math.h>\n#include <string.h>\n\n", memory_of(plan),
                       constants_of(graph));
    if (statements.patch() > 0) {
        text += concat("static int16_t patch[", statements.patch(), "];\n");
    }
    for (auto const& helper : statements.helpers()) {
        text += c_helper(helper);
    }
    auto const at_sample = listed(facts.inputs, "", [](Input const& input) {
        return concat(input.parameter, " + i * ", input.values, ", ");
    });
    text += concat("\nstatic int run_one(", parameters_of_one(graph), "float *output)\n{\n",
                   unread(graph), body, "    return 0;\n}\n\nint ", name, "_run(size_t samples, ",
                   parameters(facts.inputs),
                   ", float *outputs)\n{\n"
                   "    for (size_t i = 0; i < samples; ++i)\n        if (run_one(",
                   at_sample, "outputs + i * ", facts.outputs,
                   ") != 0)\n            return 1;\n    return 0;\n}\n\nsize_t ", name,
                   "_memory(void)\n{\n    return ", facts.memory, ";\n}\n");
    text += classes_of(graph, name);
    return {text, header_of(facts), fortran_of(facts)};
}

std::string c_name(std::string const& stem) {
    std::string name;
    for (char const letter : stem) {
        auto const code = static_cast<unsigned char>(letter);
        name.push_back(code < 0x80 && std::isalnum(code) != 0 ? letter : '_');
    }
    bool const begins_well =
        !name.empty() && std::isalpha(static_cast<unsigned char>(name[0])) != 0;
    return begins_well ? name : "model_" + name;
}

std::string c_runner(std::vector<CInput> const& inputs, std::string const& stem) {
    auto const name = c_name(stem);
    auto const all = named(inputs);
    auto const read = listed(all, "", [&](Input const& input) {
        auto const& values = input.parameter;
        auto const count = concat("samples * ", input.macro(name));
        return concat("    ", input.type, " *", values, " = malloc(", count, " * sizeof *", values,
                      ");\n    if (!", values, " || fread(", values, ", sizeof *", values, ", ",
                      count, ", file) != ", count, ")\n        return 2;\n");
    });
    auto const arguments =
        listed(all, "", [](Input const& input) { return input.parameter + ", "; });
    return concat(
        "#include \"", stem,
        ".h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n"
        "int main(int argc, char **argv)\n{\n"
        "    const size_t samples = argc == 5 ? strtoul(argv[3], 0, 10) : 0;\n"
        "    const size_t out = samples * ",
        upper_case(name),
        "_OUTPUTS;\n    float *outputs = malloc(out * sizeof *outputs);\n"
        "    FILE *file = argc == 5 ? fopen(argv[1], \"rb\") : 0;\n    clock_t best = 0;\n"
        "    long times = argc == 5 ? strtol(argv[4], 0, 10) : 0;\n"
        "    if (!file || !outputs)\n        return 2;\n",
        read,
        "    fclose(file);\n    while (times-- > 0) {\n        clock_t begin = clock(), end;\n"
        "        if (",
        name, "_run(samples, ", arguments,
        "outputs) != 0)\n            return 1;\n        end = clock() - begin;\n"
        "        best = best == 0 || end < best ? end : best;\n    }\n"
        "    file = fopen(argv[2], \"wb\");\n    if (!file || fwrite(outputs, sizeof *outputs, "
        "out, "
        "file) != out || fclose(file) != 0)\n        return 2;\n"
        "    printf(\"%.9g\\n\", (double)best / CLOCKS_PER_SEC / (double)samples);\n    return "
        "0;\n}\n");
}

} // namespace lockstep::deploy
