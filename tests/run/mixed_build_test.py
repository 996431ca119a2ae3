"""Libraries of different builds are refused: they would compute wrong numbers without a word."""
import re
import shutil
import subprocess

import media
from harness import BUILD, Scratch, check

FILES = ["lockstep", "liblockstep_core.so", "liblockstep_trainer.so", "liblockstep_media.so"]
MODELS = ["models"]
VIDEO = ["data", "import", "video", "clips", "clips.h5", "--frames", "4", "--size", "8x8", "--overwrite"]

wanted = re.search(r'"([0-9a-f]{16})"', (BUILD / "src/generated/lockstep/build_id_value.hpp").read_text()).group(1)
for odd, command in zip(FILES[1:], (MODELS, MODELS, VIDEO)):
    with Scratch() as scratch:
        for name in FILES:
            shutil.copy2(BUILD / name, scratch / name)
        (scratch / "clips/a").mkdir(parents=True)
        (scratch / "clips/a/whole.avi").write_bytes(media.avi(40))

        def start():
            return subprocess.run([scratch / "lockstep", *command], capture_output=True, text=True, cwd=scratch)

        fits = start()
        check(fits.returncode == 0, f"a copy of one build works: {fits.stderr}")
        # Half of it, since compilers put eight bytes at a time into the code.
        content = (scratch / odd).read_bytes()
        check(wanted[:8].encode() in content, f"{odd} holds its build id")
        (scratch / odd).write_bytes(content.replace(wanted[:8].encode(), b"00000000"))
        mixed = start()
        check(mixed.returncode == 69, f"a mixture with another {odd} ends with 69, not "
              f"{mixed.returncode}: {mixed.stdout}")
        check("from a different build" in mixed.stderr, f"it says why: {mixed.stderr}")
