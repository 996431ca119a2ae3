"""Runs an ONNX file in onnxruntime for `lockstep export check`, on one core.

    python3 lockstep_export_check.py MODEL INPUTS OUTPUTS SAMPLES TIMES

reads SAMPLES samples from INPUTS (one after the other, in the type of the model's input), writes the outputs
(float32) to OUTPUTS, and prints the time of one sample in seconds: the fastest of TIMES repetitions. Exits
with 3 if onnxruntime or numpy is missing.
"""
import sys
import time

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(3)

TYPES = {"tensor(float)": numpy.float32, "tensor(uint8)": numpy.uint8, "tensor(int64)": numpy.int64}


def main():
    model, inputs, outputs, samples, times = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    form = session.get_inputs()[0]
    values = numpy.fromfile(inputs, TYPES[form.type]).reshape(samples, *form.shape[1:])
    found = [session.run(None, {form.name: values[i:i + 64]})[0] for i in range(0, samples, 64)]
    numpy.concatenate(found).astype(numpy.float32).tofile(outputs)
    best = None
    for _ in range(times):
        begin = time.perf_counter()
        session.run(None, {form.name: values[:1]})
        taken = time.perf_counter() - begin
        best = taken if best is None else min(best, taken)
    print(f"{best or 0:.9g}")


main()
