"""Lets matplotlib start with the fonts that were found when the environment was made.

To look for them takes the longer the more there are, and what it finds would be kept in the home folder, which is the
workspace of a job. Nothing is done, and no file made, before matplotlib is imported.
"""

import os
import sys


class _Prepare:
    def find_spec(self, name, path=None, target=None):
        if name == "matplotlib":
            sys.meta_path.remove(self)
            os.environ.setdefault("MPLBACKEND", "Agg")
            if "MPLCONFIGDIR" not in os.environ:
                self.fill()
        return None

    def fill(self):
        import shutil
        import tempfile

        try:
            folder = tempfile.mkdtemp(prefix="matplotlib-")
            for entry in os.scandir(os.path.join(sys.prefix, "matplotlib")):
                shutil.copy(entry.path, folder)
        except OSError:
            # matplotlib then looks for the fonts itself, and complains if that fails too.
            return
        os.environ["MPLCONFIGDIR"] = folder


sys.meta_path.insert(0, _Prepare())
