"""Calls an exported C model through the Fortran module beside it."""
import shutil
import subprocess

import numpy as np

MAIN = """
program main
  use NAME_model
  implicit none
  KIND :: inputs(model_inputs)
  real(c_float) :: outputs(model_outputs)
  integer :: i
  inputs = 1
  if (run_model(1_c_size_t, inputs, outputs) /= 0 .or. model_memory() == 0) stop 1
  do i = 1, model_outputs
    print '(es16.9)', outputs(i)
  end do
end program
"""


def outputs_of_ones(source, kind):
    """What Fortran gets from `source`, NAME.c with its NAME.o, for a sample of ones of this type, "real(c_float)".
    None without gfortran."""
    if not shutil.which("gfortran"):
        return None
    name = source.stem
    main = source.with_name(f"{name}_main.f90")
    main.write_text(MAIN.replace("NAME", name).replace("KIND", kind))
    program = source.with_name(f"{name}_f90")
    subprocess.run(["gfortran", "-Wall", "-Werror", "-std=f2008", source.with_suffix(".f90"), main,
                    source.with_suffix(".o"), "-o", program], check=True, cwd=source.parent)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), np.float32)
