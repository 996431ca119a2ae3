"""Runs an ONNX file in onnxruntime for `lockstep export check`, on one core.

    python3 lockstep_export_check.py MODEL INPUTS OUTPUTS SAMPLES TIMES

reads SAMPLES samples from INPUTS (one after the other, in the type of the model's input; of several inputs, all
samples of the first, then those of the next), writes the outputs (float32) to OUTPUTS, and prints the time of one
sample in seconds: the fastest of TIMES repetitions. Exits with 3 if onnxruntime or numpy is missing.
"""
import math
import sys
import time

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

TYPES = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64,
         "tensor(uint8)": numpy.uint8, "tensor(int64)": numpy.int64}


def main():
    model, inputs, outputs, samples, times = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    values = {}
    with open(inputs, "rb") as file:
        for form in session.get_inputs():
            count = samples * math.prod(form.shape[1:])
            values[form.name] = numpy.fromfile(file, TYPES[form.type], count).reshape(samples, *form.shape[1:])

    def part(first, end):
        return {name: value[first:end] for name, value in values.items()}

    found = [session.run(None, part(i, i + 64))[0] for i in range(0, samples, 64)]
    numpy.concatenate(found).astype(numpy.float32).tofile(outputs)
    best = None
    for _ in range(times):
        begin = time.perf_counter()
        session.run(None, part(0, 1))
        taken = time.perf_counter() - begin
        best = taken if best is None else min(best, taken)
    print(f"{best or 0:.9g}")


main()
