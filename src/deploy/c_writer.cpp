#include "deploy/c_writer.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "deploy/c_statements.hpp"

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

/// What stands in both files.
struct Facts {
    std::string name;
    std::string input_type;
    std::int64_t inputs = 0;
    std::int64_t outputs = 0;
    std::uint64_t memory = 0;
    std::string told; ///< one line, JSON, for those who read the file again

    std::string first_lines() const {
        return concat("/* Written by lockstep. lockstep-export ", commented(told), "\n   ", inputs,
                      " values (", input_type, ") in, ", outputs, " float out, for each sample. ",
                      memory,
                      " bytes of static memory for\n   the values between layers, besides the "
                      "weights;\n   only one thread at a time may run the model. */\n");
    }
};

std::string header_of(Facts const& facts) {
    std::string upper = facts.name;
    std::ranges::transform(upper, upper.begin(),
                           [](unsigned char letter) { return std::toupper(letter); });
    auto const& name = facts.name;
    return concat(facts.first_lines(), "#ifndef ", upper, "_H\n#define ", upper,
                  "_H\n#include <stddef.h>\n#include <stdint.h>\n#ifdef __cplusplus\nextern \"C\" "
                  "{\n#endif\n\n#define ",
                  upper, "_INPUTS ", facts.inputs, "\n#define ", upper, "_OUTPUTS ", facts.outputs,
                  "\n\n/* Computes the outputs of `samples` samples, stored one after the other. "
                  "Returns 0, or 1 if\n   a whole number among the inputs is out of range. */\n"
                  "int ",
                  name, "_run(size_t samples, const ", facts.input_type,
                  " *inputs, float *outputs);\n\n/* Bytes of static memory besides the weights. "
                  "*/\nsize_t ",
                  name,
                  "_memory(void);\n\n/* The name of a class; null if it has none. */\n"
                  "const char *",
                  name, "_class(int number);\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

std::string fortran_of(Facts const& facts) {
    auto const type = facts.input_type == "float"     ? "real(c_float)"
                      : facts.input_type == "int64_t" ? "integer(c_int64_t)"
                                                      : "integer(c_int8_t)";
    auto const& name = facts.name;
    return concat(
        "! Written by lockstep: interfaces to ", name, ".c\nmodule ", name,
        "_model\n  use, intrinsic :: iso_c_binding\n  implicit none\n  integer, parameter :: "
        "model_inputs = ",
        facts.inputs, "\n  integer, parameter :: model_outputs = ", facts.outputs,
        "\n  interface\n    ! Returns 0, or 1 if a whole number among the inputs is out of "
        "range\n    integer(c_int) function run_model(samples, inputs, outputs) &\n"
        "        bind(c, name='",
        name, "_run')\n      import\n      integer(c_size_t), value :: samples\n      ", type,
        ", intent(in) :: inputs(*)\n      real(c_float), intent(out) :: outputs(*)\n    end "
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

} // namespace

CSource c_source(Graph const& graph, std::string const& name) {
    MemoryPlan const plan(graph);
    CStatements statements(graph, plan);
    std::string body;
    for (auto const& node : graph.nodes()) {
        body += statements.of(node);
    }
    auto const told = graph.facts.find("lockstep");
    Facts const facts{name,
                      c_type(graph[graph.input()].element),
                      elements(graph[graph.input()].shape),
                      elements(graph[graph.output()].shape),
                      plan.bytes() + static_cast<std::uint64_t>(statements.patch()) * patch_bytes,
                      told == graph.facts.end() ? std::string() : told->second};
    auto text = concat(facts.first_lines(), "#include \"", name,
                       ".h\"\n\n#include <math.h>\n#include <string.h>\n\n", memory_of(plan),
                       constants_of(graph));
    if (statements.patch() > 0) {
        text += concat("static int16_t patch[", statements.patch(), "];\n");
    }
    for (auto const& helper : statements.helpers()) {
        text += c_helper(helper);
    }
    text += concat("\nstatic int run_one(const ", facts.input_type, " *input, float *output)\n{\n",
                   body, "    return 0;\n}\n\nint ", name, "_run(size_t samples, const ",
                   facts.input_type,
                   " *inputs, float *outputs)\n{\n"
                   "    for (size_t i = 0; i < samples; ++i)\n        if (run_one(inputs + i * ",
                   facts.inputs, ", outputs + i * ", facts.outputs,
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

std::string c_runner(Graph const& graph, std::string const& name) {
    return c_runner(c_type(graph[graph.input()].element), name);
}

std::string c_runner(std::string const& input_type, std::string const& name) {
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(),
                           [](unsigned char letter) { return std::toupper(letter); });
    return concat(
        "#include \"", name,
        ".h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n"
        "int main(int argc, char **argv)\n{\n"
        "    const size_t samples = argc == 5 ? strtoul(argv[3], 0, 10) : 0;\n"
        "    const size_t in = samples * ",
        upper, "_INPUTS, out = samples * ", upper, "_OUTPUTS;\n    ", input_type,
        " *inputs = malloc(in * sizeof *inputs);\n    float *outputs = malloc(out * sizeof "
        "*outputs);\n    FILE *file = argc == 5 ? fopen(argv[1], \"rb\") : 0;\n    clock_t "
        "best = 0;\n    long times = argc == 5 ? strtol(argv[4], 0, 10) : 0;\n"
        "    if (!file || !inputs || !outputs || fread(inputs, sizeof *inputs, in, file) != in)\n"
        "        return 2;\n    fclose(file);\n    while (times-- > 0) {\n        clock_t begin = "
        "clock(), "
        "end;\n        if (",
        name,
        "_run(samples, inputs, outputs) != 0)\n            return 1;\n        end = clock() - "
        "begin;\n"
        "        best = best == 0 || end < best ? end : best;\n    }\n"
        "    file = fopen(argv[2], \"wb\");\n    if (!file || fwrite(outputs, sizeof *outputs, "
        "out, "
        "file) != out || fclose(file) != 0)\n        return 2;\n"
        "    printf(\"%.9g\\n\", (double)best / CLOCKS_PER_SEC / (double)samples);\n    return "
        "0;\n}\n");
}

} // namespace lockstep::deploy
