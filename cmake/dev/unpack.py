"""Unpacks the headers and libraries of wheels: unpack.py FOLDER WHEEL..."""

import sys
import zipfile

# The rest of these wheels is Python code, static archives and a Boost that would shadow the system's.
FOLDERS = ("torch/lib/", "torch/include/", "ns3/include/ns3/", "ns3/lib64/", "nvidia/")


def wanted(name: str) -> bool:
    return (name.startswith(FOLDERS) or ".dist-info/" in name) and not name.endswith(".a")


def main() -> None:
    for wheel in sys.argv[2:]:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(sys.argv[1], [n for n in archive.namelist() if wanted(n)])


main()
